internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SystemIO

extension VolumeNeed {
  /// The need as `restore --dry-run --json` prints it.
  var json: JSON {
    .object(
      JSON.path(directory) + [
        JSON.Member("bytes_needed", .integer(Int64(clamping: bytes))),
        JSON.Member("bytes_free", .integer(Int64(clamping: room))),
        JSON.Member("entries_needed", .integer(Int64(clamping: entries))),
        JSON.Member(
          "entries_free",
          space.countsInodes ? .integer(Int64(clamping: space.availableInodes)) : .null),
        JSON.Member("fits", .string(verdict.rawValue)),
      ])
  }
}

extension Console {
  /// Warns about volumes that may lack room. The operation is tried nevertheless.
  func warn(ofPerhapsTooMuch needs: [VolumeNeed]) {
    for need in needs where need.verdict == .uncertain {
      warning(
        "there may be no room in '\(need.directory)': \(need.shortage ?? ""), if existing files "
          + "stay and nothing is compressed")
    }
  }

  /// Warns about volumes that lack room, for which the operation would be refused.
  func warn(ofTooMuch needs: [VolumeNeed]) {
    for need in needs where need.verdict == .lacksRoom {
      warning(
        "would be refused: in '\(need.directory)' \(need.shortage ?? ""); \(RestorePlan.roomHint)"
      )
    }
  }
}
