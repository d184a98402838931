internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Retention
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl snapshots`: lists and shows snapshots.
struct SnapshotsCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "snapshots",
      abstract: "List the snapshots of a repository",
      discussion: """
        Without a subcommand the snapshots are listed, with the options of 'snapshots list'.

        \(Examples.text([
          "sandboxctl snapshots --repo repo", "sandboxctl snapshots show latest --repo repo",
        ]))
        """,
      subcommands: [List.self, Show.self, Pin.self, Unpin.self],
      defaultSubcommand: List.self)
  }
}

extension SnapshotsCommand {
  /// `sandboxctl snapshots [list]`: lists the snapshots.
  struct List: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "list",
        abstract: "List the snapshots of a repository",
        usage:
          "sandboxctl snapshots [list] [--app <app>] [--tag <tags>] [--host <host>] [<options>]",
        discussion: """
          Lists the snapshots, oldest first. A snapshot that cannot be read is reported, and the \
          exit status is 13. Snapshots that were read before are listed from a cache if their \
          files did not change; 'sandboxctl check' reads all of them.

          The column 'reason' is shown if some snapshots were not made by hand, 'scope' if some \
          are not of a whole device, 'pinned' if some are pinned, and 'signature' if some are not \
          accepted. 'latest' names only snapshots of a whole device, unless an app is given.

          \(Examples.text([
            "sandboxctl snapshots --app notebook --last 3 --repo repo"
          ]))
          """)
    }

    @Option(help: .app("List only snapshots with this app"))
    var app: String?

    @Option(
      name: .customLong("tag"),
      help: ArgumentHelp(
        "List only snapshots with all of these tags, separated by commas, or without tags if "
          + "empty; may be repeated.", valueName: "tags"))
    var tags: [SnapshotTags] = []

    @Option(help: ArgumentHelp("List only snapshots of this host.", valueName: "host"))
    var host: String?

    @Option(
      help: ArgumentHelp(
        "The number of newest snapshots to list (default: all).", valueName: "number"))
    var last: Int?

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      if let last, last < 1 {
        throw UsageError(
          .invalidValue, "'--last \(last)' selects no snapshot", hint: "give a number of 1 or more")
      }
      let opened = try repository.open(console).repository
      let (listing, pins) = try opened.hostHeadsAndPins()
      let selected = listing.heads.filter(isSelected)
      let shown = Array(selected.suffix(last ?? selected.count))
      if output.json {
        for head in shown {
          try console.result(
            head.json(
              isPinned: pins.contains(head.id), isTrusted: opened.refusal(of: head) == nil))
        }
      } else if shown.isEmpty {
        if !output.quiet { console.note(Self.none(of: listing)) }
      } else {
        for line in Rows(shown, pins, of: opened).lines { try console.result(line) }
      }
      return console.warn(skipping: listing.damaged)
    }

    private func isSelected(_ snapshot: SnapshotHead) -> Bool {
      if let host, snapshot.host != host { return false }
      if !tags.isEmpty, !tags.contains(where: { $0.list.matches(snapshot) }) { return false }
      if let app, !snapshot.apps.contains(where: { $0.isCalled(app) }) { return false }
      return true
    }

    private static func none(of listing: SnapshotHeads) -> String {
      listing.heads.isEmpty
        ? "there is no snapshot yet: 'sandboxctl backup' makes one"
        : "none of \(Sizes.count(listing.heads.count, "snapshot")) matches"
    }
  }
}

extension SnapshotsCommand.List {
  /// The text output of `snapshots list`, a line for each snapshot.
  ///
  /// The columns for the reason and the scope are omitted if all snapshots were made by hand and
  /// cover whole devices, and the one for pins if none is pinned.
  private struct Rows {
    private let snapshots: [SnapshotHead]
    private let pins: Set<SnapshotID>
    private let repository: Repository

    init(_ snapshots: [SnapshotHead], _ pins: Set<SnapshotID>, of repository: Repository) {
      (self.snapshots, self.pins, self.repository) = (snapshots, pins, repository)
    }

    var lines: [String] {
      let columns = self.columns
      var table = Table(columns.map { ($0.title, $0.alignment) })
      for stored in snapshots { table.add(columns.map { $0.cell(stored) }) }
      return table.lines
    }

    private struct Column {
      let title: String
      let alignment: Table.Alignment
      let cell: (SnapshotHead) -> String

      init(
        _ title: String, _ alignment: Table.Alignment = .left,
        cell: @escaping (SnapshotHead) -> String
      ) {
        (self.title, self.alignment, self.cell) = (title, alignment, cell)
      }
    }

    private var columns: [Column] {
      let hasReasons = snapshots.contains { $0.reason != .manual }
      let hasParts = snapshots.contains { $0.scope != .device }
      let head = [
        Column("id") { String($0.id.hex.prefix(8)) }, Column("time") { Times.text($0.time) },
        Column("device") { $0.deviceText },
      ]
      let reason = Column("reason") { $0.reason.rawValue.shown }
      let scope = Column("scope") { $0.scope.text.shown }
      let hasPins = snapshots.contains { pins.contains($0.id) }
      let pinned = Column("pinned") { [pins] in pins.contains($0.id) ? "yes" : "" }
      let hasRefused = snapshots.contains { repository.refusal(of: $0) != nil }
      let signature = Column("signature") { [repository] in
        repository.refusal(of: $0)?.word ?? "trusted"
      }
      let optional =
        (hasReasons ? [reason] : []) + (hasParts ? [scope] : []) + (hasPins ? [pinned] : [])
        + (hasRefused ? [signature] : [])
      return head + optional + [
        Column("policy") { $0.policy.name.shown },
        Column("apps", .right) { Sizes.count($0.apps.count) },
        Column("files", .right) { Sizes.count(Int(clamping: $0.totals.files)) },
        Column("size", .right) { Sizes.text($0.totals.bytes) },
        Column("stored", .right) { Sizes.text($0.totals.stored) },
        Column("tags") { $0.tags.joined(separator: ",").shown },
      ]
    }
  }
}

extension TrustedSigners.Refusal {
  /// The state of a snapshot's signature, in a column.
  fileprivate var word: String {
    switch self {
    case .unsigned: "none"
    case .malformed, .wrong: "wrong"
    case .untrusted: "untrusted"
    }
  }
}

extension Scope {
  /// "device", or the first app and the number of the others.
  var text: String {
    guard case .apps(let apps) = self else { return "device" }
    guard let first = apps.first else { return "no app" }
    return apps.count == 1 ? first : "\(first) and \(apps.count - 1) more"
  }
}

extension Scope {
  /// The apps of a snapshot's scope; null for a whole device.
  var json: JSON {
    if case .apps(let apps) = self { return .array(apps.map { .string($0) }) }
    return .null
  }
}

extension SnapshotHead {
  /// The user, the host and the root of the device.
  var deviceText: String { "\(user)@\(host):".shown + device.root.description }

  /// The snapshot as a line of `snapshots --json`.
  fileprivate func json(isPinned: Bool, isTrusted: Bool) -> JSON {
    .object(
      [
        JSON.Member("id", .string(id.hex)), JSON.Member("time", .string(time.rfc3339)),
        JSON.Member("host", .string(host)), JSON.Member("user", .string(user)),
        JSON.Member("device", .string(device.identity)),
        JSON.Member("layout", .string(device.layout)),
      ] + JSON.path(device.root, named: "root") + [
        JSON.Member("reason", .string(reason.rawValue)),
        JSON.Member("scope", scope.json),
        JSON.Member("policy", .string(policy.name)),
        JSON.Member("apps", .array(apps.map { .string($0.identifier) })),
        JSON.Member("files", .integer(Int64(clamping: totals.files))),
        JSON.Member("bytes", .integer(Int64(clamping: totals.bytes))),
        JSON.Member("stored_bytes", .integer(Int64(clamping: totals.stored))),
        JSON.Member("parent", parent.map { .string($0.hex) } ?? .null),
        JSON.Member("tags", .array(tags.map { .string($0) })),
        JSON.Member("pinned", .bool(isPinned)),
        JSON.Member("signer", signature.signer.map { .string($0.description) } ?? .null),
        JSON.Member("trusted", .bool(isTrusted)),
      ])
  }
}
