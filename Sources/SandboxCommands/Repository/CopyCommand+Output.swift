internal import ArchiveStore
internal import Codecs
internal import SystemIO

extension RepositoryCopy.Report {
  /// Returns the report as text: a line for each copied snapshot, and totals.
  func lines(isDry: Bool, isChecked: Bool) -> [String] {
    var lines = copied.map { $0.line }
    let others = present > 0 ? ", \(Sizes.count(present)) existed before" : ""
    let verb = isDry ? "would copy" : "copied"
    lines.append(
      "\(verb) \(Sizes.count(copied.count)) of \(Sizes.count(snapshots, "snapshot"))\(others)")
    if neededBlobs > 0 { lines.append(amounts(isDry: isDry)) }
    if isChecked, !isDry {
      lines.append(
        "read \(Sizes.text(checkedBytes)) in \(Sizes.count(checkedBlobs, "blob")) again: "
          + (damagedInTarget.isEmpty ? "no damage found" : "damage found"))
    }
    if isInterrupted { lines.append("interrupted: the next copy continues") }
    return lines
  }

  private func amounts(isDry: Bool) -> String {
    let needed =
      "the other repository \(isDry ? "lacks" : "lacked") \(Sizes.text(missingBytes)) of "
      + Sizes.text(neededBytes)
    guard !isDry, newPacks > 0 else { return needed }
    let frames = [
      movedFrames > 0 ? "\(Sizes.count(movedFrames, "frame")) unchanged" : nil,
      partFrames > 0 ? "parts of \(Sizes.count(partFrames, "frame"))" : nil,
    ]
    let stored = "stored \(Sizes.text(newBytes)) in \(Sizes.count(newPacks, "pack"))"
    return ([needed, stored] + frames.compactMap { $0 }).joined(separator: ", ")
  }

  /// Returns the report as `copy --json` prints it: a line for each snapshot that was copied or that
  /// is damaged, and the summary.
  func jsonLines(isDry: Bool) -> [JSON] {
    copied.map { $0.json(isDry: isDry) } + incomplete.map { $0.json("incomplete") }
      + damagedInTarget.map { $0.json("damaged-in-target") } + [["summary": summary(isDry: isDry)]]
  }

  private func summary(isDry: Bool) -> JSON {
    [
      "dry_run": .bool(isDry), "snapshots": .integer(Int64(snapshots)),
      "present": .integer(Int64(present)), "copied": .integer(Int64(copied.count)),
      "incomplete": .integer(Int64(incomplete.count)),
      "damaged_in_target": .integer(Int64(damagedInTarget.count)),
      "unreadable": .integer(Int64(unreadable.count)),
      "damaged": .array(damaged.map { .string($0.description) }),
      "target_damage": .array(targetDamage.map { .string($0.description) }),
      "needed_blobs": .integer(Int64(neededBlobs)),
      "needed_bytes": .integer(Int64(clamping: neededBytes)),
      "missing_blobs": .integer(Int64(missingBlobs)),
      "missing_bytes": .integer(Int64(clamping: missingBytes)),
      "moved_frames": .integer(Int64(movedFrames)), "part_frames": .integer(Int64(partFrames)),
      "new_packs": .integer(Int64(newPacks)), "new_bytes": .integer(Int64(clamping: newBytes)),
      "checked_blobs": .integer(Int64(checkedBlobs)),
      "checked_bytes": .integer(Int64(clamping: checkedBytes)),
      "interrupted": .bool(isInterrupted),
    ]
  }
}

extension RepositoryCopy.Copied {
  fileprivate var line: String {
    let copy = id.map { $0 == head.id ? "" : " as \($0.hex.prefix(8))" } ?? ""
    return "snapshot \(head.id.hex.prefix(8)) of \(Times.text(head.time)), "
      + "\(head.deviceText)\(copy)"
  }

  fileprivate func json(isDry: Bool) -> JSON {
    var members = [
      JSON.Member("id", .string(head.id.hex)), JSON.Member("time", .string(head.time.rfc3339)),
      JSON.Member("outcome", .string(isDry ? "would-copy" : "copied")),
    ]
    if let id { members.append(JSON.Member("copy", .string(id.hex))) }
    return .object(members)
  }
}
