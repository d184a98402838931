internal import CLinux

/// The reliability of file times as evidence that content is unchanged (docs/state-file.md,
/// "Rules").
package enum VolumeTimes: Sendable, Hashable {
  /// The clock of this machine sets the times, and a change of content updates them, possibly late.
  case exact
  /// The clock of another machine may set the times: network file systems and FUSE.
  case remote
  /// Content may change while all times stay the same: memory file systems never write back, so a
  /// store through a mapping updates no time; images are built with the times and inodes of others.
  case loose
}

extension Descriptor {
  /// Returns the reliability of file times on this volume.
  package func volumeTimes() throws(SystemError) -> VolumeTimes { try volumeTimes(overlaid: 0) }

  /// Returns the reliability of file times on this volume, which is a layer of `depth` nested
  /// overlays.
  func volumeTimes(overlaid depth: Int) throws(SystemError) -> VolumeTimes {
    switch try SystemError.check(.space, name, running: { cl_volume_times(raw) }) {
    case Int(CL_TIMES_EXACT): .exact
    case Int(CL_TIMES_REMOTE): .remote
    case Int(CL_TIMES_LAYERED): try OverlayLayers.times(of: self, depth: depth)
    default: .loose
    }
  }
}

extension Descriptor {
  /// Whether no process has the file open or mapped for writing: every later write then updates its
  /// modification time (docs/state-file.md, "Rules"). False if that is unknown, as for another
  /// user's file or on a network file system.
  package var hasNoWriter: Bool { cl_has_no_writer(raw) == 1 }
}

extension Directory {
  /// Returns the reliability of file times on the directory's volume.
  package func volumeTimes() throws(SystemError) -> VolumeTimes { try descriptor.volumeTimes() }
}
