internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// `sandboxctl trash list`: lists the trash of a device.
struct TrashListCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "list",
      abstract: "List the trash of a device",
      usage: "sandboxctl trash list [--root <dir>] [<options>]",
      discussion: """
        Prints a line for each operation, oldest first: when it began, what its trash contains, \
        and where that is. To recover a file, move it back from there.

        \(Examples.text([
          "sandboxctl trash list --root device", "sandboxctl trash list --root device --json",
        ]))
        """)
  }

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    var isEmpty = true
    for choice in try device.choices() {
      let found = try choice.find()
      console.warn(ofInterruptedOn: found)
      for item in try Trash(of: found).items() {
        isEmpty = false
        try output.json
          ? console.result(item.json(of: found.root)) : console.result(item.text)
        if output.json { continue }
        for directory in item.directories { try console.result("  \(Paths.text(directory))") }
      }
    }
    if isEmpty, !output.json, !output.quiet { try console.result("the trash is empty") }
    return .done
  }
}

extension Trash.Item {
  fileprivate func json(of root: ByteString) -> JSON {
    .object(
      JSON.path(root, named: "root") + JSON.path(id, named: "id") + [
        JSON.Member("operation", operation.map { .string($0) } ?? .null),
        JSON.Member("time", .string(time.rfc3339)),
        JSON.Member("subjects", .array(subjects.map { .object(JSON.path($0)) })),
        JSON.Member("holds", totals.json),
        JSON.Member("places", .array(directories.map { .object(JSON.path($0)) })),
      ])
  }

  fileprivate var text: String {
    let of = subjects.map(\.description).joined(separator: ", ")
    return "\(id)  \(Times.ago(time))  \(operation ?? "unknown") of \(of.isEmpty ? "?" : of): "
      + totals.text
  }
}
