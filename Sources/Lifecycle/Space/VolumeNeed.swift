public import SystemIO

/// What an operation writes on a volume, held against the room there (docs/restore.md, "Space").
///
/// What is to be written is what it takes at least, so that nothing is refused that would fit; it may end
/// without room all the same. What gives way is still there while what comes is staged, and frees nothing.
public struct VolumeNeed: Sendable, Hashable {
  /// The directory on the volume that is written into.
  public let directory: ByteString
  /// Bytes that are to be written, holes not counted.
  public internal(set) var bytes: UInt64
  /// Files and directories that are to be made.
  public internal(set) var entries: UInt64
  /// The room that there is.
  public let space: VolumeSpace
  /// Whether it is known what the files take: not where the file system may compress them.
  public internal(set) var isCertain: Bool

  /// Whether everything has its place.
  public enum Verdict: String, Sendable {
    case fits = "yes"
    case lacksRoom = "no"
    /// It has no place as it is, and may have one compressed.
    case uncertain
  }

  init(directory: ByteString, bytes: UInt64, entries: UInt64, space: VolumeSpace) {
    (self.directory, self.bytes, self.entries, self.space) = (directory, bytes, entries, space)
    isCertain = space.keeping != .unknown
  }

  /// Bytes that this process can still write there.
  public var room: UInt64 {
    Host.userID == 0 ? [space.available, space.reserved].clampedSum : space.available
  }

  /// Whether everything has its place.
  public var verdict: Verdict {
    shortage == nil ? .fits : isCertain ? .lacksRoom : .uncertain
  }

  /// What does not fit, as a sentence; nothing where everything does.
  public var shortage: String? {
    if bytes > room {
      return
        "\(ByteCount.text(bytes)) are to be written, and \(ByteCount.text(room)) are free there"
    }
    if space.countsInodes, entries > space.availableInodes {
      return "\(entries) files and directories are to be made, and there is room for "
        + "\(space.availableInodes)"
    }
    return nil
  }
}
