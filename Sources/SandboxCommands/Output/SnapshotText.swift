internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The text output of `snapshots show`.
struct SnapshotText {
  private let stored: StoredSnapshot
  private let listsAll: Bool
  private var snapshot: Snapshot { stored.snapshot }

  init(_ stored: StoredSnapshot, listsAll: Bool) {
    (self.stored, self.listsAll) = (stored, listsAll)
  }

  var lines: [String] {
    head + section("apps", apps) + section("data classes", classes)
      + section("excluded", excluded)
      + section("not in the snapshot: could not be read", notes(snapshot.unreadable))
      + section("warnings", notes(snapshot.warnings))
      + section("mounts not entered", snapshot.mounts.map(\.description))
      + section("databases", snapshot.databases.map { "\($0.path): \(Self.shown($0.how))" })
  }

  /// Returns a text of the repository for display. Repositories are not trusted.
  private static func shown(_ text: String) -> String { ByteString(text).description }

  private func section(_ title: String, _ lines: [String]) -> [String] {
    lines.isEmpty ? [] : ["", title] + lines.map { "  " + $0 }
  }

  private func notes(_ notes: [PathNote]) -> [String] {
    notes.map { "\($0.path): \(Self.shown($0.note))" }
  }

  private var head: [String] {
    var table = Table([("snapshot", .left), (stored.id.hex, .left)])
    let duration = Times.duration(Double(snapshot.durationMilliseconds) / 1000)
    table.add([
      "made",
      "\(Times.text(snapshot.time)), in \(duration), \(Self.shown(snapshot.reason.rawValue))",
    ])
    table.add(["by", Self.shown("\(snapshot.user)@\(snapshot.host), \(snapshot.program)")])
    table.add(["device", device])
    table.add(["root", snapshot.device.root.description])
    if case .apps(let apps) = snapshot.scope {
      table.add(["scope", Self.shown(apps.joined(separator: ", "))])
    }
    table.add([
      "policy", Self.shown(snapshot.policy.name) + " " + snapshot.policy.digest.hex.prefix(16),
    ])
    if let parent = snapshot.parent { table.add(["parent", parent.hex]) }
    if !snapshot.tags.isEmpty {
      table.add(["tags", Self.shown(snapshot.tags.joined(separator: ", "))])
    }
    if let original = snapshot.original {
      table.add(["copy of", "\(original.id.hex) in \(original.repository.hex.prefix(8))"])
    }
    table.add(["holds", holds])
    return table.lines
  }

  private var device: String {
    let device = snapshot.device
    let system = device.osVersion.map { " \($0)" } ?? ""
    return Self.shown("\(device.identity): \(device.layout), \(device.platform)\(system)")
  }

  private var holds: String {
    let totals = snapshot.totals
    return "\(Sizes.text(totals.bytes)) in \(Sizes.count(Int(clamping: totals.files), "file")), "
      + "\(Sizes.count(Int(clamping: totals.entries), "entry")); "
      + "\(Sizes.text(totals.stored)) new"
  }

  private var apps: [String] {
    let excerpt = ListExcerpt(snapshot.apps, all: listsAll)
    return excerpt.shown.map { app in
      let version = [app.version, app.build.map { "(\($0))" }].compactMap { $0 }
      let words = [app.identifier, app.name ?? "", version.joined(separator: " ")]
      return Self.shown(words.filter { !$0.isEmpty }.joined(separator: "  "))
    } + [excerpt.remainder].compactMap(\.self)
  }

  private var classes: [String] {
    if snapshot.totals.classes.isEmpty { return [] }
    var table = Table([("class", .left), ("files", .right), ("size", .right)])
    for total in snapshot.totals.classes {
      table.add([
        Self.shown(total.name), Sizes.count(Int(clamping: total.files)), Sizes.text(total.bytes),
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
        Self.shown(left.rule),
      ])
    }
    return table.lines + [excerpt.remainder].compactMap(\.self)
  }
}
