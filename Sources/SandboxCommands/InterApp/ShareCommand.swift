internal import ArgumentParser
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

/// `sandboxctl interapp share ITEM…`: shows which Share and Action extensions are offered for
/// items.
struct ShareCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "share",
      abstract: "Show which Share and Action extensions are offered for items",
      usage: "sandboxctl interapp share <item> ... [--root <dir>] [<options>]",
      discussion: """
        Evaluates the activation rule of each Share and Action extension: a dictionary of counts, \
        or a predicate. An item is a file, text:<text>, url:<url>, or page:<url> for a page in a \
        browser; write ./ before the name of a file that begins like these. Prints for each \
        extension whether it is offered, and why. Nothing is shared. The exit status is 5 if no \
        extension is offered.

        \(Examples.text([
          "sandboxctl interapp share text:Hello --root device",
          "sandboxctl interapp share text:Hello text:World --root device --json",
        ]))
        """)
  }

  /// In other commands `--exclude` takes patterns.
  static var ownOptions: Set<String> { ["exclude"] }

  @Argument(help: ArgumentHelp("The items to share together.", valueName: "item"))
  var items: [ByteString]

  @Option(
    help: ArgumentHelp(
      "A type of activity that the sharing app excludes: the identifier of an extension, of an "
        + "extension point or of a service of the system; may be repeated.", valueName: "type"))
  var exclude: [ByteString] = []

  @OptionGroup var source: InterAppOptions

  @Flag(help: "List irregularities of the declarations of all apps.")
  var findings = false

  @OptionGroup var list: ListOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    if items.count > SharedAttachments.limit {
      throw UsageError(
        .invalidValue,
        "\(items.count) items are given, more than the limit of "
          + "\(SharedAttachments.limit)", hint: "share fewer items together")
    }
    let (device, model) = try source.load()
    let attachments = SharedAttachments(try items.map { try Self.attachment($0, model.tree) })
    let catalog = ExtensionCatalog(reading: device)
    let offers = ShareOffers(
      attachments,
      ShareOffers.Conditions(excluded: exclude, layout: device.layout, version: model.version),
      of: catalog, points: try InterAppOptions.points(), in: model.tree)
    if output.json {
      try console.result(offers.json(device: device.root, catalog))
    } else {
      try offers.write(console, listsAll: list.all)
      try catalog.remarks.write(
        console, findings: findings, listsAll: list.all, isQuiet: output.quiet)
    }
    return offers.offered().isEmpty ? .goalNotMet : .done
  }

  /// Returns the attachment for an argument.
  private static func attachment(
    _ item: ByteString, _ tree: TypeTree
  ) throws -> SharedAttachment {
    for (prefix, make) in forms where item.bytes.starts(with: prefix.utf8) {
      return try make(ByteString(item.bytes.dropFirst(prefix.utf8.count)))
    }
    return .file(item, of: try FileToOpen(item).type(in: tree).type)
  }

  private typealias Form = (prefix: String, make: @Sendable (ByteString) throws -> SharedAttachment)

  private static let forms: [Form] = [
    ("text:", { .text($0) }),
    ("url:", { .url(try URLText(reading: $0)) }),
    ("page:", { .page(try URLText(reading: $0)) }),
  ]
}
