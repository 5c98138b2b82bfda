/** The heading of the commands that run a broker, in the help. */
export const operatorGroup = "Commands for a broker of one's own:";
