internal import CLinux

/// What the times of files are worth as proof that a content is what it was (docs/state-file.md,
/// "Rules").
public enum VolumeTimes: Sendable, Hashable {
  /// This machine's clock gives them, and a change of content moves them, if late.
  case exact
  /// Another machine's clock may give them: a network file system, or FUSE.
  case remote
  /// A content may be another and all times the same: what lies in memory is never written back, so
  /// that a store through a mapping moves none; images are made with the times and inodes of others.
  case loose
}

extension Descriptor {
  /// What the times of the volume's files are worth.
  public func volumeTimes() throws(SystemError) -> VolumeTimes { try volumeTimes(overlaid: 0) }

  /// The reliability of file times on this volume, itself a layer of `depth` nested overlays.
  func volumeTimes(overlaid depth: Int) throws(SystemError) -> VolumeTimes {
    switch try SystemError.check(.space, name, { cl_volume_times(raw) }) {
    case Int(CL_TIMES_EXACT): .exact
    case Int(CL_TIMES_REMOTE): .remote
    case Int(CL_TIMES_LAYERED): try OverlayLayers.times(of: self, depth: depth)
    default: .loose
    }
  }
}

extension Descriptor {
  /// Whether nobody has the file open for writing, or mapped so: whatever is written from here on moves
  /// its time of modification (docs/state-file.md, "Rules"). False where that cannot be told, as
  /// for another user's file or on a network file system.
  public var hasNoWriter: Bool { cl_has_no_writer(raw) == 1 }
}

extension Directory {
  /// What the times of the files on the directory's volume are worth.
  public func volumeTimes() throws(SystemError) -> VolumeTimes { try descriptor.volumeTimes() }
}
