internal import ArgumentParser

/// `sandboxctl trash`: lists or empties the trash of a device.
struct TrashCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "trash",
      abstract: "List or empty the trash of a device",
      discussion: """
        Data that an operation replaces or removes in the containers of an app is not deleted: it \
        moves to .sandboxctl/trash in the device's root, below the name of the operation and under \
        its logical path, and still uses its space. The next successful operation on the same app \
        deletes it if it is more than 24 hours old.

        \(Examples.text([
          "sandboxctl trash list --root device", "sandboxctl trash empty --root device",
        ]))
        """,
      subcommands: [TrashListCommand.self, TrashEmptyCommand.self])
  }
}
