internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import Migration
internal import SandboxModel
internal import SystemIO

extension DeviceMigrationRun {
  /// The exit status of the previews: entries that conflict are not migrated.
  static func status(of previews: [ContainerPreview]) -> ExitStatus {
    previews.allSatisfy(\.conflicts.isEmpty) ? .done : .doneInPart
  }

  /// Prints the containers of the source with their counterparts, and what would be copied.
  func show(_ previews: [ContainerPreview], _ console: Console) throws {
    if command.output.json {
      for preview in previews { try console.result(preview.json) }
    } else {
      let excerpt = ListExcerpt(
        previews, all: command.listAll, isEmpty: \.isEmpty, size: \.bytes)
      try console.list(excerpt, line: \.line)
    }
    showProblems(previews, console)
  }

  func showProblems(_ previews: [ContainerPreview], _ console: Console) {
    let conflicts = previews.flatMap { preview in
      preview.conflicts.map { preview.pairing.source.logicalPrefix.appending($0) }
    }
    console.list(conflicts, as: .warning("not copied: "), all: command.listAll) {
      "\($0): the target has another entry"
    }
  }
}

extension ContainerPreview {
  /// The size by which text shows the largest containers: that of the data that is copied or has no
  /// counterpart.
  fileprivate var bytes: UInt64 { [copied.bytes, withoutPlace.bytes].clampedSum }

  /// Whether the container has nothing to report.
  fileprivate var isEmpty: Bool {
    copied.files + withoutPlace.files + excluded.files + present == 0 && conflicts.isEmpty
  }

  /// The line about the container.
  fileprivate var line: String {
    let target = pairing.counterpart.path.map { " -> \($0)" } ?? ""
    return "\(pairing.counterpart.word)  \(pairing.source.logicalPrefix)\(target)  "
      + parts.joined(separator: ", ")
  }

  /// The parts of the text about a container.
  fileprivate var parts: [String] {
    var parts: [String] = []
    if pairing.counterpart == .noPlace {
      parts.append("no place for \(withoutPlace.text)")
    } else {
      parts.append(copied.files == 0 ? "nothing to copy" : "copy \(copied.text)")
    }
    if present > 0 { parts.append("already there \(Sizes.count(present, "file"))") }
    if !conflicts.isEmpty { parts.append("\(Sizes.count(conflicts.count, "conflict"))") }
    if excluded.files > 0 { parts.append("excluded by the policy \(excluded.text)") }
    return parts
  }

  fileprivate var json: JSON {
    var members = JSON.path(pairing.source.logicalPrefix)
    members.append(JSON.Member("fate", .string(pairing.counterpart.word)))
    if let target = pairing.counterpart.path { members += JSON.path(target, named: "target") }
    members += [
      JSON.Member("copy", Self.json(copied)),
      JSON.Member("present", .integer(Int64(present))),
      JSON.Member("conflicts", .array(conflicts.map { .object(JSON.path($0)) })),
      JSON.Member("excluded", Self.json(excluded)),
      JSON.Member("without_place", Self.json(withoutPlace)),
    ]
    return .object(members)
  }

  private static func json(_ totals: EntryTotals) -> JSON {
    [
      "files": .integer(Int64(totals.files)), "bytes": .integer(Int64(clamping: totals.bytes)),
    ]
  }
}

extension ContainerPairing.Counterpart {
  /// The word for output, as `restore --to-device` has it.
  fileprivate var word: String {
    switch self {
    case .present: "merge"
    case .missing: "make"
    case .appMissing: "harbor"
    case .noPlace: "no-place"
    }
  }

  /// The path of a present container.
  fileprivate var path: ByteString? {
    if case .present(let path) = self { path } else { nil }
  }
}
