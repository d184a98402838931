internal import ArgumentParser

/// `sandboxctl interapp`: shows what passes between the apps of a device.
struct InterAppCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "interapp",
      abstract: "Show what passes between the apps of a device",
      discussion: """
        These commands apply the rules of Apple's platforms to the declarations in the apps' \
        Info.plist files: document types, uniform type identifiers, URL schemes and extensions. \
        They change nothing.

        \(Examples.text([
          "sandboxctl interapp handlers --type public.plain-text --root device",
          "sandboxctl interapp open notebook://new --root device",
        ]))
        """,
      subcommands: [
        HandlersCommand.self, OpenCommand.self,
        ShareCommand.self, ExtensionsCommand.self, GroupsCommand.self,
      ])
  }
}
