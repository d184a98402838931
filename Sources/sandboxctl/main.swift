import SandboxCommands

SandboxctlProgram.runAndExit()
