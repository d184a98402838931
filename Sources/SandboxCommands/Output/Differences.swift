internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SystemIO

/// Counts of the differences between snapshots.
struct DifferenceSummary {
  private var counts: [SnapshotDifference.Kind: Int] = [:]
  private var addedBytes: UInt64 = 0
  private var removedBytes: UInt64 = 0
  /// The number of directories that could not be compared.
  var damaged = 0

  mutating func count(_ difference: SnapshotDifference) {
    counts[difference.kind, default: 0] += 1
    switch difference.kind {
    case .added: addedBytes.addClamping(difference.after?.contentSize ?? 0)
    case .removed: removedBytes.addClamping(difference.before?.contentSize ?? 0)
    case .content, .metadata, .type: break
    }
  }

  private func of(_ kind: SnapshotDifference.Kind) -> Int { counts[kind] ?? 0 }

  /// Returns the last line of text output: `2 added (1.2 MiB), 1 modified`.
  func text(listsMetadata: Bool) -> String {
    var parts: [String] = []
    if of(.added) > 0 {
      parts.append("\(Sizes.count(of(.added))) added (\(Sizes.text(addedBytes)))")
    }
    if of(.removed) > 0 {
      parts.append("\(Sizes.count(of(.removed))) removed (\(Sizes.text(removedBytes)))")
    }
    if of(.content) > 0 { parts.append("\(Sizes.count(of(.content))) modified") }
    if of(.type) > 0 { parts.append("\(Sizes.count(of(.type))) of another type") }
    if of(.metadata) > 0 {
      let how = listsMetadata ? "" : " (--metadata lists them)"
      parts.append("\(Sizes.count(of(.metadata))) in metadata only\(how)")
    }
    return parts.isEmpty ? "no differences" : parts.joined(separator: ", ")
  }

  /// The last line of JSON output.
  var json: JSON {
    let members = SnapshotDifference.Kind.allCases.map { kind in
      JSON.Member(kind.rawValue, .integer(Int64(of(kind))))
    }
    let bytes: [JSON.Member] = [
      JSON.Member("added_bytes", .integer(Int64(clamping: addedBytes))),
      JSON.Member("removed_bytes", .integer(Int64(clamping: removedBytes))),
      JSON.Member("damaged", .integer(Int64(damaged))),
    ]
    return ["summary": .object(members + bytes)]
  }
}

extension SnapshotDifference {
  /// The difference as text: `M  apps/…/notes.md`.
  var text: String {
    let suffix = (after ?? before)?.isDirectory == true ? "/" : ""
    let detail = kind == .metadata ? "  (\(aspects.map(\.rawValue).joined(separator: ", ")))" : ""
    return "\(letter)  \(path)\(suffix)\(detail)"
  }

  private var letter: String {
    switch kind {
    case .added: "+"
    case .removed: "-"
    case .content: "M"
    case .metadata: "U"
    case .type: "T"
    }
  }

  /// The difference as a line of `diff --json`.
  var json: JSON {
    var members = JSON.path(path)
    members.append(JSON.Member("change", .string(kind.rawValue)))
    if !aspects.isEmpty {
      members.append(JSON.Member("differs", .array(aspects.map { .string($0.rawValue) })))
    }
    if let before { members.append(JSON.Member("before", JSON.object(before.jsonMembers))) }
    if let after { members.append(JSON.Member("after", JSON.object(after.jsonMembers))) }
    return .object(members)
  }
}

extension TreeEntry {
  /// Whether the entry is a directory.
  var isDirectory: Bool { if case .directory = node { true } else { false } }
}
