internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import InterApp
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl interapp groups`: lists the groups of apps that share data.
struct GroupsCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "groups",
      abstract: "List the groups of apps, their members and sizes",
      usage: "sandboxctl interapp groups [--app <app>] [--root <dir>] [<options>]",
      discussion: """
        Lists each group container with its members, its size, and the app with which it would be \
        removed. Members are known from entitlements or a policy, or guessed from identifiers; a \
        guess never removes a group. A group without an installed member is an orphan. --app \
        lists the groups of one app and the bytes that its removal would free.

        \(Examples.text([
          "sandboxctl interapp groups --root device",
          "sandboxctl interapp groups --app notebook --root device --json",
        ]))
        """)
  }

  static var ownOptions: Set<String> { ["app"] }

  @Option(help: .app("List only the groups of this app"))
  var app: ByteString?

  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyChoice
  @OptionGroup var list: ListOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let found = try InterAppOptions.checked(try device.find())
    let app = try self.app.map { try found.app($0) }
    let compiled = try policy.compile(for: found.layout)
    let removesLast = compiled.containers[.group]?.uninstall == .removeWithLastKnownMember
    let groups = GroupList(of: found.stating(groupsOf: compiled), removesLast: removesLast)
    let result = GroupsResult(found.root, groups, app: app?.identifier)
    if output.json {
      try console.result(result.json)
    } else {
      try result.write(console, listsAll: list.all)
    }
    return .done
  }
}

/// The result of `interapp groups`.
struct GroupsResult {
  private let root: ByteString
  private let groups: [GroupUse]
  /// The app whose groups are listed, or nil.
  private let app: BundleIdentifier?
  /// The groups that its removal removes.
  private let removed: [GroupUse]

  init(_ root: ByteString, _ list: GroupList, app: BundleIdentifier?) {
    self.root = root
    self.app = app
    groups = list.groups.filter { group in
      app == nil || group.members.contains { $0.app.identifier == app }
    }
    removed = app.map { list.removed(with: $0) } ?? []
  }

  private var removedBytes: UInt64 { removed.reduce(0) { $0 + $1.size.bytes } }

  // MARK: - Text

  func write(_ console: Console, listsAll: Bool) throws {
    if groups.isEmpty { return try console.result("no groups") }
    var table = Table([
      ("group", .left), ("size", .right), ("files", .right), ("members", .left),
      ("removed with", .left),
    ])
    let excerpt = ListExcerpt(
      groups, all: listsAll, isEmpty: { _ in false }, size: { $0.size.bytes })
    for group in excerpt.shown {
      table.add([
        group.identifier?.description ?? group.container?.logicalPrefix.description ?? "",
        group.container == nil ? "none" : group.size.text,
        group.container == nil ? "" : Sizes.count(Int(clamping: group.size.files)),
        group.isOrphan ? orphan(group) : members(of: group),
        group.removedWith?.description ?? "none: \(group.reasonToKeep ?? "")",
      ])
    }
    try console.result(table, remainder: excerpt.remainder)
    if let app {
      try console.result("")
      let count = removed.isEmpty ? "no group" : Sizes.count(removed.count, "group")
      let bytes = removed.isEmpty ? "" : ", \(Sizes.text(removedBytes))"
      try console.result("the removal of \(app) removes \(count)\(bytes)")
    }
  }

  private func orphan(_ group: GroupUse) -> String {
    let members = members(of: group)
    return members.isEmpty ? "orphan" : "orphan: \(members)"
  }

  private func members(of group: GroupUse) -> String {
    group.members.map { member in
      var words: [String] = []
      if member.basis == .guessed { words.append("guessed") }
      if !member.app.isInstalled { words.append("not installed") }
      let remark = words.isEmpty ? "" : " (\(words.joined(separator: ", ")))"
      return member.app.identifier.description + remark
    }.joined(separator: ", ")
  }

  // MARK: - JSON

  /// The result as a line of `--json`.
  var json: JSON {
    .object(
      JSON.path(root, named: "root") + [
        JSON.Member("groups", .array(groups.map { Self.json(of: $0) })),
        JSON.Member("app", .text(app?.bytes)),
        JSON.Member("removed_groups", .integer(Int64(removed.count))),
        JSON.Member("removed_bytes", .integer(Int64(clamping: removedBytes))),
      ])
  }

  private static func json(of group: GroupUse) -> JSON {
    .object(
      [
        JSON.Member("id", .text(group.identifier?.bytes)),
        JSON.Member(
          "container", group.container.map { .object(JSON.path($0.logicalPrefix)) } ?? .null),
      ] + group.size.members + [
        JSON.Member("members", .array(group.members.map { json(of: $0) })),
        JSON.Member("orphan", .bool(group.isOrphan)),
        JSON.Member("removed_with", .text(group.removedWith?.bytes)),
        JSON.Member("kept_because", group.reasonToKeep.map { .string($0) } ?? .null),
      ])
  }

  private static func json(of member: GroupUse.Member) -> JSON {
    let source =
      switch member.basis {
      case .known(let source): source.rawValue
      case .stated: "policy"
      case .guessed: "guessed"
      }
    return [
      "app": .string(member.app.identifier.description), "name": .text(member.app.displayName),
      "installed": .bool(member.app.isInstalled), "known": .bool(member.basis != .guessed),
      "source": .string(source),
    ]
  }
}
