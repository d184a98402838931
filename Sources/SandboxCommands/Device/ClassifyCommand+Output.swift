internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension ClassifyCommand {
  /// The output of `classify`: a line for each entry, or a table of totals.
  struct Entries {
    private let scan: DeviceScan
    private let within: ByteString?
    private let view: Verdicts.View
    private let console: Console

    init(_ scan: DeviceScan, within: LogicalPath?, view: Verdicts.View, _ console: Console) {
      self.scan = scan
      self.within = within?.bytes
      self.view = view
      self.console = console
    }

    func write(asJSON: Bool, summary: Bool, listsAll: Bool) throws {
      if summary { return try writeSummary(asJSON: asJSON) }
      if !asJSON, !listsAll, within == nil, count > ListExcerpt<ContainerScan>.limit {
        return try writeLargest()
      }
      for container in scan.containers {
        var reader = ProtectionReader(container)
        for index in container.entries.indices {
          if let within, !container.logicalPath(index).isWithin(within) { continue }
          let stated = container.entries[index].statedProtection(index, &reader)
          try console.result(
            asJSON
              ? json(index, of: container, stated: stated).compact
              : line(index, of: container, stated: stated))
        }
      }
    }

    private var count: Int { scan.containers.reduce(0) { $0 + $1.entries.count } }

    /// Writes the largest files of the device.
    private func writeLargest() throws {
      let files = scan.containers.indices.flatMap { container in
        scan.containers[container].entries.indices.filter {
          scan.containers[container].entries[$0].status.kind != .directory
        }.map { (container: container, index: $0) }
      }
      let excerpt = ListExcerpt(files, all: false) {
        scan.containers[$0.container].entries[$0.index].status.size
      }
      try console.list(excerpt) { found in
        let container = scan.containers[found.container]
        var reader = ProtectionReader(container)
        let stated = container.entries[found.index].statedProtection(found.index, &reader)
        return line(found.index, of: container, stated: stated)
      }
    }

    private func line(
      _ index: Int, of container: ContainerScan, stated: ProtectionClass?
    ) -> String {
      let entry = container.entries[index]
      return Self.line(
        entry.verdicts[view], entry.selection, at: container.logicalPath(index),
        kind: entry.status.kind, isRoot: index == 0, stated: stated)
    }

    private func json(
      _ index: Int, of container: ContainerScan, stated: ProtectionClass?
    ) -> JSON {
      container.entries[index].json(
        at: container.logicalPath(index),
        real: container.container.absolutePath.appending(container.path(index)), view,
        isRoot: index == 0, stated: stated)
    }

    /// Returns a line of text output. The columns have fixed widths, since lines are written as
    /// entries are found.
    ///
    /// - Parameter stated: the class of data protection that a file's metadata states. It is shown
    ///   unless it is the usual one.
    static func line(
      _ verdict: Verdict, _ selection: ScannedEntry.Selection, at path: ByteString,
      kind: FileKind, isRoot: Bool, stated: ProtectionClass? = nil
    ) -> String {
      let columns = [
        (verdict.className(isRoot: isRoot) ?? "-", 11), (selection.name, 8),
        (verdict.update.rawValue, 10), (verdict.purge.word, 8), (verdict.restore.rawValue, 14),
      ]
      let cells = columns.map { text, width in
        text + String(repeating: " ", count: max(0, width - text.count))
      }
      let protection = kind == .file ? stated ?? verdict.protection : nil
      let note = protection == .untilFirstUnlock ? nil : protection?.rawValue
      return cells.joined(separator: "  ") + "  \(path)" + (kind == .directory ? "/" : "")
        + (note.map { "  protection \($0)" } ?? "")
    }

    private func writeSummary(asJSON: Bool) throws {
      var sums: [DataClass: (kept: EntryTotals, left: EntryTotals)] = [:]
      for container in scan.containers {
        for (index, entry) in container.entries.enumerated() where entry.status.kind == .file {
          if let within, !container.logicalPath(index).isWithin(within) { continue }
          var sum = sums[entry.verdicts[view].dataClass] ?? (EntryTotals(), EntryTotals())
          if entry.selection == .excluded {
            sum.left.add(entry.status)
          } else {
            sum.kept.add(entry.status)
          }
          sums[entry.verdicts[view].dataClass] = sum
        }
      }
      let known = DataClass.allCases.compactMap { name in sums[name].map { (name, $0) } }
      if asJSON {
        for (name, sum) in known {
          try console.result(
            ["class": .string(name.rawValue), "keeps": sum.kept.json, "leaves_out": sum.left.json])
        }
        return
      }
      var table = Table([
        ("class", .left), ("kept", .right), ("files", .right), ("excluded", .right),
        ("files", .right),
      ])
      for (name, sum) in known {
        table.add([
          name.rawValue, Sizes.text(sum.kept.bytes), Sizes.count(sum.kept.files),
          Sizes.text(sum.left.bytes), Sizes.count(sum.left.files),
        ])
      }
      try console.result(table)
    }
  }
}

extension ScannedEntry.Selection {
  /// The word in JSON.
  var word: String { self == .excluded ? "left-out" : name }

  /// The word in text, the same as in the totals and in 'backup'.
  fileprivate var name: String {
    switch self {
    case .included: "kept"
    case .parentOnly: "bare"
    case .excluded: "excluded"
    }
  }
}

extension ScannedEntry {
  /// Returns the class of data protection that a file's metadata states.
  fileprivate func statedProtection(
    _ index: Int, _ reader: inout ProtectionReader
  ) -> ProtectionClass? {
    status.kind == .file ? reader.stated(on: index) : nil
  }

  /// Returns a line of `classify --json`.
  func json(
    at path: ByteString, real: ByteString, _ view: Verdicts.View, isRoot: Bool,
    stated: ProtectionClass?
  ) -> JSON {
    var members = JSON.path(path) + JSON.path(real, named: "real_path")
    members += [
      JSON.Member("type", .string(status.kind.word)),
      JSON.Member("size", .integer(Int64(clamping: status.size))),
      JSON.Member("stored", .string(selection.word)),
    ]
    members += verdicts[view].members(isRoot: isRoot)
    if status.kind == .file { members += verdicts[view].protectionMembers(stated: stated) }
    if view == .keep, verdicts.platform != verdicts.keep {
      members.append(JSON.Member("platform", .object(verdicts.platform.members(isRoot: isRoot))))
    }
    return .object(members)
  }
}

extension Verdict {
  /// Returns the class for the output; nil for the root of a container that no rule matches. The
  /// root has no data of its own, and "unknown" would suggest data that no rule matches.
  func className(isRoot: Bool) -> String? {
    isRoot && dataClass == .unknown ? nil : dataClass.rawValue
  }

  /// Returns the members about the class of data protection in JSON; none if it is unknown.
  ///
  /// - Parameter stated: the class that the file's metadata states.
  func protectionMembers(stated: ProtectionClass?) -> [JSON.Member] {
    guard let known = stated ?? protection else { return [] }
    return [
      JSON.Member("protection", .string(known.rawValue)),
      JSON.Member("protection_by", .string(stated == nil ? "policy" : "metadata")),
    ]
  }

  /// Returns the verdict's members in JSON.
  func members(isRoot: Bool) -> [JSON.Member] {
    [
      JSON.Member("class", className(isRoot: isRoot).map { .string($0) } ?? .null),
      JSON.Member("backup", backup.json),
      JSON.Member("update", .string(update.rawValue)),
      JSON.Member("purge", purge.json),
      JSON.Member("restore", .string(restore.rawValue)),
    ]
  }
}
