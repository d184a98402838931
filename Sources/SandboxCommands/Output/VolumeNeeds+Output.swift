internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SystemIO

extension VolumeNeed {
  /// The need as `restore --dry-run --json` tells it.
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
  /// Says what may not fit, and is tried all the same.
  func warn(ofPerhapsTooMuch needs: [VolumeNeed]) {
    for need in needs where need.verdict == .uncertain {
      warning(
        "there may be no room in '\(need.directory)': \(need.shortage ?? ""), if what is there now "
          + "stays and nothing is compressed")
    }
  }

  /// Says what would be refused, for want of room.
  func warn(ofTooMuch needs: [VolumeNeed]) {
    for need in needs where need.verdict == .lacksRoom {
      warning(
        "it would be refused: in '\(need.directory)' \(need.shortage ?? ""); \(RestorePlan.roomHint)"
      )
    }
  }
}
