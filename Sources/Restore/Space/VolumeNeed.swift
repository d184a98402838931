package import SystemIO

/// The space that an operation needs on a volume, compared with the room there (docs/restore.md,
/// "Space").
///
/// The need is a minimum, so that nothing that would fit is refused; an operation may run out of
/// room nonetheless. Replaced entries still exist while new ones are staged, so they free nothing.
package struct VolumeNeed: Sendable, Hashable {
  /// The directory on the volume that is written into.
  package let directory: ByteString
  /// The bytes to write, without holes.
  package internal(set) var bytes: UInt64
  /// The number of files and directories to create.
  package var entries: UInt64
  /// The room on the volume.
  package let space: VolumeSpace
  /// Whether the space that the files take is known; false if the file system may compress them.
  package internal(set) var isCertain: Bool

  /// Whether the operation fits.
  package enum Verdict: String, Sendable {
    case fits = "yes"
    case lacksRoom = "no"
    /// It does not fit uncompressed, but may fit compressed.
    case uncertain
  }

  package init(directory: ByteString, bytes: UInt64, entries: UInt64, space: VolumeSpace) {
    (self.directory, self.bytes, self.entries, self.space) = (directory, bytes, entries, space)
    isCertain = space.keeping != .unknown
  }

  /// The bytes that this process can still write there.
  package var room: UInt64 {
    Host.userID == 0 ? [space.available, space.reserved].clampedSum : space.available
  }

  /// Whether the operation fits.
  package var verdict: Verdict {
    shortage == nil ? .fits : isCertain ? .lacksRoom : .uncertain
  }

  /// The shortage as a sentence; nil if the operation fits.
  package var shortage: String? {
    if bytes > room {
      return
        "\(ByteCount.text(bytes)) are needed, but only \(ByteCount.text(room)) are free there"
    }
    if space.countsInodes, entries > space.availableInodes {
      return "\(entries) files and directories are needed, but there is room for only "
        + "\(space.availableInodes)"
    }
    return nil
  }
}
