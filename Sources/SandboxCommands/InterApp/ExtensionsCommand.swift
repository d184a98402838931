internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

/// `sandboxctl interapp extensions`: lists the extensions of a device's apps and their points.
struct ExtensionsCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "extensions",
      abstract: "List the extensions of apps and their extension points",
      usage:
        "sandboxctl interapp extensions [--app <app>] [--root <dir>] [<options>]",
      discussion: """
        Lists the extensions in the bundles of installed apps with their extension points and the \
        sizes of their containers, and the points with their names and the first versions of iOS \
        and macOS that have them. --all also lists known points without an extension.

        \(Examples.text([
          "sandboxctl interapp extensions --root device",
          "sandboxctl interapp extensions --app notebook --root device --json",
        ]))
        """)
  }

  static var ownOptions: Set<String> { ["app"] }

  @Option(help: .app("List only the extensions of this app"))
  var app: ByteString?

  @Option(help: ArgumentHelp("List only extensions of this point.", valueName: "id"))
  var point: ByteString?

  @OptionGroup var device: DeviceOptions

  @Flag(help: "List irregularities of the extensions' declarations.")
  var findings = false

  @OptionGroup var list: ListOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let found = try InterAppOptions.checked(try device.find())
    let app = try self.app.map { try found.app($0).identifier }
    let catalog = ExtensionCatalog(reading: found)
    let result = ExtensionsResult(
      found, catalog, points: try InterAppOptions.points(), app: app, point: point)
    if output.json {
      try console.result(result.json)
    } else {
      try result.write(console, listsAll: list.all)
      try catalog.remarks.write(
        console, findings: findings, listsAll: list.all, isQuiet: output.quiet)
    }
    return .done
  }
}

/// The result of `interapp extensions`.
struct ExtensionsResult {
  private let root: ByteString
  private let catalog: ExtensionCatalog
  private let rows: [Row]
  private let points: [PointRow]

  /// An extension with its container.
  private struct Row {
    let item: AppExtension
    let container: Container?
    let size: DirectorySize
  }

  /// An extension point, and the number of listed extensions.
  private struct PointRow {
    let identifier: ByteString
    /// The known point, or nil.
    let known: ExtensionPoints.Point?
    let count: Int
  }

  init(
    _ device: Device, _ catalog: ExtensionCatalog, points: ExtensionPoints, app: BundleIdentifier?,
    point: ByteString?
  ) {
    root = device.root
    self.catalog = catalog
    let containers = Dictionary(
      device.containers.filter { $0.kind == .extension }.compactMap { container in
        container.identifier.map { ($0, container) }
      }, uniquingKeysWith: { first, _ in first })
    rows = catalog.extensions.filter { item in
      (app == nil || item.app == app) && (point == nil || item.point == point)
    }.map { item in
      let container = containers[item.identifier]
      return Row(
        item: item, container: container,
        size: container.map { DirectorySize(of: $0.absolutePath) } ?? DirectorySize())
    }
    var counts: [ByteString: Int] = [:]
    for row in rows { if let point = row.item.point { counts[point, default: 0] += 1 } }
    let unknown = Set(counts.keys).union([point].compactMap(\.self))
      .subtracting(points.points.map(\.identifier)).sorted()
    self.points =
      points.points.filter { point == nil || $0.identifier == point }.map {
        PointRow(identifier: $0.identifier, known: $0, count: counts[$0.identifier] ?? 0)
      } + unknown.map { PointRow(identifier: $0, known: nil, count: counts[$0] ?? 0) }
  }

  // MARK: - Text

  func write(_ console: Console, listsAll: Bool) throws {
    if rows.isEmpty {
      try console.result("no extension is found")
    } else {
      var table = Table([
        ("app", .left), ("extension", .left), ("name", .left), ("point", .left),
        ("version", .left), ("container", .right),
      ])
      let excerpt = ListExcerpt(rows, all: listsAll)
      for row in excerpt.shown {
        let version = [row.item.version, row.item.build.map { ByteString("(\($0))") }]
        table.add([
          row.item.app.description, row.item.identifier.description,
          row.item.name?.description ?? "", row.item.point?.description ?? "none",
          version.compactMap { $0?.description }.joined(separator: " "),
          row.container == nil ? "none" : row.size.text,
        ])
      }
      try console.result(table, remainder: excerpt.remainder)
    }
    try console.result("")
    var table = Table([
      ("point", .left), ("name", .left), ("iOS", .left), ("macOS", .left), ("extensions", .right),
    ])
    for row in points where listsAll || row.count > 0 || points.count == 1 {
      table.add([
        row.identifier.description, row.known?.name ?? "unknown",
        row.known?.iOS?.description ?? "", row.known?.macOS?.description ?? "",
        Sizes.count(row.count),
      ])
    }
    if !table.isEmpty { try console.result(table) }
  }

  // MARK: - JSON

  /// The result as a line of `--json`.
  var json: JSON {
    .object(
      JSON.path(root, named: "root") + [
        JSON.Member("extensions", .array(rows.map { Self.json(of: $0) })),
        JSON.Member("points", .array(points.map { Self.json(of: $0) })),
      ] + catalog.remarks.members)
  }

  private static func json(of row: Row) -> JSON {
    .object(
      [
        JSON.Member("app", .string(row.item.app.description)),
        JSON.Member("app_name", .text(row.item.appName)),
        JSON.Member("id", .string(row.item.identifier.description)),
        JSON.Member("name", .text(row.item.name)), JSON.Member("point", .text(row.item.point)),
        JSON.Member("version", .text(row.item.version)),
        JSON.Member("build", .text(row.item.build)),
        JSON.Member("rule", .string(row.item.rule.name)),
      ] + JSON.path(row.item.path) + [
        JSON.Member(
          "container",
          row.container.map { .object(JSON.path($0.logicalPrefix) + row.size.members) } ?? .null)
      ])
  }

  private static func json(of row: PointRow) -> JSON {
    [
      "id": .text(row.identifier), "known": .bool(row.known != nil),
      "name": row.known.map { .string($0.name) } ?? .null,
      "ios": row.known?.iOS.map { .string($0.description) } ?? .null,
      "macos": row.known?.macOS.map { .string($0.description) } ?? .null,
      "source": row.known.map { .string($0.source) } ?? .null,
      "extensions": .integer(Int64(row.count)),
    ]
  }
}

extension DirectorySize {
  /// The size in text output.
  var text: String { Sizes.text(bytes) + (isIncomplete ? " or more" : "") }

  /// The size as members of an object.
  var members: [JSON.Member] {
    [
      JSON.Member("files", .integer(Int64(clamping: files))),
      JSON.Member("bytes", .integer(Int64(clamping: bytes))),
      JSON.Member("complete", .bool(!isIncomplete)),
    ]
  }
}
