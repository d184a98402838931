internal import ArgumentParser

/// `sandboxctl trash`: what operations replaced or removed on a device.
struct TrashCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "trash",
      abstract: "Show or empty what operations on a device replaced",
      discussion: """
        What an operation replaces or removes in an app's containers is not deleted: it moves to \
        .sandboxctl/trash in the device's root, below the operation's name, under its logical path, \
        and takes as much space as before. The next successful operation on the same app deletes it \
        once it is 24 hours old.

        \(Examples.text([
          "sandboxctl trash list --root device", "sandboxctl trash empty --root device",
        ]))
        """,
      subcommands: [TrashListCommand.self, TrashEmptyCommand.self])
  }
}
