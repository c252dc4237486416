import { expect, test, vi } from "vitest";
import { systemClock } from "../../clock.ts";
import { Rate } from "./rate.ts";

test("tells rate and time left of the last seconds alone", () => {
  const now = vi.spyOn(systemClock, "nowMs");
  const at = (seconds: number, mib: number) => {
    now.mockReturnValue(1000 * seconds);
    rate.reached(mib * 2 ** 20);
    return rate.text();
  };
  now.mockReturnValue(0);
  // What is there already didn't come at any rate.
  const rate = new Rate(100 * 2 ** 20, 2148 * 2 ** 20);
  expect(rate.text()).toBe("100.0 MiB of 2.1 GiB");
  expect(at(1, 110)).toBe("110.0 MiB of 2.1 GiB, 10.0 MiB/s, 4 min left");
  expect(at(5, 148)).toBe("148.0 MiB of 2.1 GiB, 9.6 MiB/s, 4 min left");
  expect(at(10, 1148)).toBe("1.1 GiB of 2.1 GiB, 200.0 MiB/s, 5 s left");
  expect(at(15, 1148)).toBe("1.1 GiB of 2.1 GiB");
  expect(at(16, 1149)).toBe("1.1 GiB of 2.1 GiB, 0.2 MiB/s, 1 h 40 min left");
  now.mockRestore();
});
