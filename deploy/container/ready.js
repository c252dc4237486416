// Whether the server of this container is ready: the image's HEALTHCHECK. Exits with 1 where it isn't.
const port = process.env["DELTAFOLD_PORT"] || "8080";
const { ok } = await fetch(`http://127.0.0.1:${port}/health/ready`);
process.exitCode = ok ? 0 : 1;
