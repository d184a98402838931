internal import ArchiveStore
internal import ArgumentParser
internal import Backup
internal import Codecs
internal import SnapshotQueries
internal import SystemIO

extension SnapshotsCommand {
  /// `sandboxctl snapshots show SNAP`: shows the details of a snapshot.
  struct Show: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "show",
        abstract: "Show the details of a snapshot",
        usage: "sandboxctl snapshots show <snap> [<options>]",
        discussion: """
          Prints the snapshot's device, time, policy and signature, its apps, the size of each \
          data class, excluded data with the rule that excludes it, entries that could not be \
          read, warnings, mounts that were not entered, and how each database was captured.

          With --json prints the stored document (Snapshot in docs/repository-format.md), preceded \
          by the id and the signature.

          \(Examples.text(["sandboxctl snapshots show latest --repo repo"]))
          """)
    }

    @Argument(help: ArgumentHelp("The snapshot.", valueName: "snap"))
    var snapshot: String

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let name = try SnapshotName(snapshot)
      let opened = try repository.open(console).repository
      let stored = try SnapshotFinder(opened, console).find(name)
      if output.json {
        try console.result(Self.json(stored, in: opened))
      } else {
        for line in Text(stored, in: opened, listsAll: list.all).lines { try console.result(line) }
      }
      return .done
    }

    /// The id, the signature and the stored members. A stored member that this version does not
    /// know cannot replace the first ones.
    private static func json(_ stored: StoredSnapshot, in repository: Repository) -> JSON {
      let signer = stored.signature.signer
      let first: [JSON.Member] = [
        JSON.Member("id", .string(stored.id.hex)),
        JSON.Member("signature", .string(stored.signature.name)),
        JSON.Member("signer", signer.map { .string($0.description) } ?? .null),
        JSON.Member("signer_name", .string(signer.flatMap { repository.trust.names[$0] } ?? "")),
        JSON.Member("trusted", .bool(repository.refusal(of: stored) == nil)),
      ]
      let names = Set(first.map(\.name))
      let members = stored.snapshot.json.members ?? []
      return .object(first + members.filter { !names.contains($0.name) })
    }
  }
}

extension SnapshotsCommand.Show {
  /// The text output of `snapshots show`.
  private struct Text {
    private let stored: StoredSnapshot
    private let repository: Repository
    private let listsAll: Bool
    private var snapshot: Snapshot { stored.snapshot }

    init(_ stored: StoredSnapshot, in repository: Repository, listsAll: Bool) {
      (self.stored, self.repository, self.listsAll) = (stored, repository, listsAll)
    }

    var lines: [String] {
      head + section("apps", apps) + section("data classes", classes)
        + section("excluded", excluded)
        + section("not in the snapshot: could not be read", notes(snapshot.unreadable))
        + section("warnings", notes(snapshot.warnings))
        + section("mounts not entered", list(snapshot.mounts, line: \.description))
        + section("databases", list(snapshot.databases) { "\($0.path): \($0.text.shown)" })
    }

    private func section(_ title: String, _ lines: [String]) -> [String] {
      lines.isEmpty ? [] : ["", title] + lines.map { "  " + $0 }
    }

    private func notes(_ notes: [PathNote]) -> [String] {
      list(notes) { "\($0.path): \($0.note.shown)" }
    }

    private func list<Element>(_ elements: [Element], line: (Element) -> String) -> [String] {
      let excerpt = ListExcerpt(elements, all: listsAll)
      return excerpt.shown.map(line) + [excerpt.remainder].compactMap(\.self)
    }

    private var head: [String] {
      var table = Table([("snapshot", .left), (stored.id.hex, .left)])
      let duration = Times.duration(Double(snapshot.durationMilliseconds) / 1000)
      table.add([
        "made",
        "\(Times.text(snapshot.time)), in \(duration), \(snapshot.reason.rawValue.shown)",
      ])
      table.add(["by", "\(snapshot.user)@\(snapshot.host), \(snapshot.program)".shown])
      table.add(["device", device])
      table.add(["root", snapshot.device.root.description])
      if case .apps(let apps) = snapshot.scope {
        table.add(["scope", apps.joined(separator: ", ").shown])
      }
      table.add([
        "policy", snapshot.policy.name.shown + " " + snapshot.policy.digest.hex.prefix(16),
      ])
      if let parent = snapshot.parent { table.add(["parent", parent.hex]) }
      if !snapshot.tags.isEmpty {
        table.add(["tags", snapshot.tags.joined(separator: ", ").shown])
      }
      if let original = snapshot.original {
        table.add(["copy of", "\(original.id.hex) in \(original.repository.hex.prefix(8))"])
      }
      table.add(["signature", signature])
      table.add(["holds", holds])
      return table.lines
    }

    /// The signer with its name, or why there is none, and whether the snapshot is accepted.
    private var signature: String {
      let trust = repository.trust
      guard let signer = stored.signature.signer else {
        let state = stored.signature.words
        return trust.snapshots.contains(stored.id) ? "\(state), accepted by its id" : state
      }
      let name = trust.names[signer].map { $0.isEmpty ? "" : " (\($0.shown))" } ?? ""
      let own = signer == trust.own ? ", this host" : ""
      let state: String
      if trust.isEmpty {
        state = "no signer is trusted"
      } else if trust.trusts(signer) {
        state = "trusted"
      } else {
        state = trust.snapshots.contains(stored.id) ? "accepted by its id" : "not trusted"
      }
      return "\(signer)\(name)\(own): \(state)"
    }

    private var device: String {
      let device = snapshot.device
      let system = device.osVersion.map { " \($0)" } ?? ""
      return "\(device.identity): \(device.layout), \(device.platform)\(system)".shown
    }

    private var holds: String {
      let totals = snapshot.totals
      return "\(Sizes.text(totals.bytes, in: Int(clamping: totals.files))), "
        + "\(Sizes.count(Int(clamping: totals.entries), "entry")); "
        + "\(Sizes.text(totals.stored)) new"
    }

    private var apps: [String] {
      list(snapshot.apps) { app in
        let version = [app.version, app.build.map { "(\($0))" }].compactMap { $0 }
        let words = [app.identifier, app.name ?? "", version.joined(separator: " ")]
        return words.filter { !$0.isEmpty }.joined(separator: "  ").shown
      }
    }

    private var classes: [String] {
      if snapshot.totals.classes.isEmpty { return [] }
      var table = Table([("class", .left), ("files", .right), ("size", .right)])
      for total in snapshot.totals.classes {
        table.add([
          total.name.shown, Sizes.count(Int(clamping: total.files)), Sizes.text(total.bytes),
        ])
      }
      return table.lines
    }

    private var excluded: [String] {
      if snapshot.excluded.isEmpty { return [] }
      var table = Table([("path", .left), ("files", .right), ("size", .right), ("by", .left)])
      let excerpt = ListExcerpt(snapshot.excluded, all: listsAll, size: \.bytes)
      for left in excerpt.shown {
        table.add([
          left.path.description, Sizes.count(Int(clamping: left.files)), Sizes.text(left.bytes),
          left.rule.shown,
        ])
      }
      return table.lines + [excerpt.remainder].compactMap(\.self)
    }
  }
}

extension SnapshotSignature {
  /// The state in JSON output.
  fileprivate var name: String {
    switch self {
    case .absent: "none"
    case .valid: "valid"
    case .wrong, .malformed: "wrong"
    }
  }

  /// The state in text output, without the signer.
  fileprivate var words: String {
    switch self {
    case .absent: "none"
    case .valid: "valid"
    case .wrong: "wrong: it does not match the content"
    case .malformed: "wrong: line 2 is not a signature"
    }
  }
}

extension SnapshotsCommand {
  /// `sandboxctl snapshots pin SNAP…`: exempts snapshots from removal.
  struct Pin: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "pin",
        abstract: "Exempt snapshots from removal",
        usage: "sandboxctl snapshots pin <snap> ... [<options>]",
        discussion: """
          A pinned snapshot is never removed by 'sandboxctl forget', neither by rules nor by name, \
          until 'sandboxctl snapshots unpin'. 'sandboxctl snapshots' shows which ones are pinned.

          \(Examples.text(["sandboxctl snapshots pin latest --repo repo"]))
          """)
    }

    @Argument(help: ArgumentHelp("The snapshots.", valueName: "snap"))
    var snapshots: [String]

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try repository.open(console).repository
      try opened.requireWritable()
      let finder = SnapshotFinder(opened, console)
      let ids = try snapshots.map { try finder.find(SnapshotName($0)).id }
      try output.show(ids, changed: try opened.pin(ids), isPinned: true, console)
      return .done
    }
  }

  /// `sandboxctl snapshots unpin SNAP…`: allows the removal of pinned snapshots again.
  struct Unpin: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "unpin",
        abstract: "Allow the removal of pinned snapshots again",
        usage: "sandboxctl snapshots unpin <snap> ... [<options>]",
        discussion: """
          Removes the pins of snapshots. The snapshots themselves are not changed. The pin of a \
          damaged snapshot can be removed by its id, and that of a lost one by its full id.

          \(Examples.text([
            "sandboxctl snapshots pin latest --repo repo",
            "sandboxctl snapshots unpin latest --repo repo",
          ]))
          """)
    }

    @Argument(help: ArgumentHelp("The snapshots.", valueName: "snap"))
    var snapshots: [String]

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try repository.open(console).repository
      try opened.requireWritable()
      let finder = SnapshotFinder(opened, console)
      let ids = try snapshots.map { text in
        let name = try SnapshotName(text)
        guard case .id(let digits) = name else { return try finder.find(name).id }
        return try opened.lostPinned().first { $0.hex == digits.lowercased() }
          ?? opened.snapshotID(matching: digits)
      }
      try output.show(ids, changed: try opened.unpin(ids), isPinned: false, console)
      return .done
    }
  }
}

extension OutputOptions {
  /// Prints which snapshots are pinned or not, and whether that changed.
  fileprivate func show(
    _ ids: [SnapshotID], changed: Set<SnapshotID>, isPinned: Bool, _ console: Console
  ) throws {
    for id in ids {
      let isChanged = changed.contains(id)
      if json {
        try console.result([
          "id": .string(id.hex), "pinned": .bool(isPinned), "changed": .bool(isChanged),
        ])
      } else if !quiet {
        let name = id.hex.prefix(8)
        let verb = isPinned ? "pinned" : "unpinned"
        let state = isPinned ? "is already pinned" : "is not pinned"
        try console.result(isChanged ? "\(verb) \(name)" : "\(name) \(state)")
      }
    }
  }
}
