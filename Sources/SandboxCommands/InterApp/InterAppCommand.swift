internal import ArgumentParser

/// `sandboxctl interapp`: shows what apps of a device exchange.
struct InterAppCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "interapp",
      abstract: "Show what passes between the apps of a device",
      discussion: """
        These commands apply the rules of Apple's platforms to the declarations in the apps' \
        Info.plist files: document types, uniform type identifiers, URL schemes and extensions. \
        Only 'deliver' and 'inbox' change the device.

        \(Examples.text([
          "sandboxctl interapp handlers --type public.plain-text --root device",
          "sandboxctl interapp open notebook://new --root device",
          "sandboxctl interapp deliver report.pdf --to notebook --root device",
        ]))
        """,
      subcommands: [
        HandlersCommand.self, OpenCommand.self, DeliverCommand.self, InboxCommand.self,
        ShareCommand.self, ExtensionsCommand.self, GroupsCommand.self,
      ])
  }
}
