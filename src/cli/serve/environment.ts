import { Command, type Help, type Option } from "commander";

/** What holds a key that other users of the machine can't see. */
export const keyVariable = "DELTAFOLD_API_KEY";

/** Where one is empty, somebody meant to set a key: that must not open the server. */
const neverUnset = [keyVariable, "DELTAFOLD_API_KEY_FILE"];
const off = ["", "0", "false", "no"];

/** The variable that stands for a flag. */
export const variableOf = (option: Option): string =>
  `DELTAFOLD_${option.name().replaceAll("-", "_").toUpperCase()}`;

/**
 * A command each of whose options can be set by a variable, which its flag overrides. Variables that are
 * empty count as not set; so do "0", "false" and "no" where the flag takes no value. An option that names
 * its variable itself keeps that.
 */
export class VariableCommand extends Command {
  override addOption(option: Option): this {
    if (option.envVar !== undefined) return super.addOption(option);
    const name = variableOf(option);
    const unset = option.isBoolean() || option.negate ? off : [""];
    const value = process.env[name];
    const given = value !== undefined && !unset.includes(value);
    if (given || neverUnset.includes(name)) option.env(name);
    return super.addOption(option);
  }

  /** One sentence of the help says of all what Commander would say of each. */
  override createHelp(): Help {
    const help = super.createHelp();
    const describe = help.optionDescription.bind(help);
    help.optionDescription = (option) =>
      describe(Object.assign(Object.create(option), { envVar: undefined }));
    return help;
  }
}
