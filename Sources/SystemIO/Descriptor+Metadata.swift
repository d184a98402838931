internal import CLinux
internal import Glibc

extension Descriptor {
  /// Sets the permission bits.
  public func setPermissions(_ bits: UInt16) throws(SystemError) {
    _ = try SystemError.check(.setMode, name) { cl_chmod(raw, UInt32(bits)) }
  }

  /// Sets the owner. Set-user-id and set-group-id bits may be cleared by it: set the mode after.
  public func setOwner(user: UInt32, group: UInt32) throws(SystemError) {
    _ = try SystemError.check(.setOwner, name) { unsafe cl_chown_at(raw, "", user, group) }
  }

  /// Sets the time of modification; that of access stays.
  public func setModified(_ time: Timestamp) throws(SystemError) {
    _ = try SystemError.check(.setTimes, name) {
      cl_set_mtime_open(raw, time.seconds, time.nanoseconds)
    }
  }

  /// The volume's free space.
  public func space() throws(SystemError) -> VolumeSpace {
    var (available, total, inodes): (UInt64, UInt64, UInt64) = (0, 0, 0)
    _ = try SystemError.check(.space, name) { unsafe cl_space(raw, &available, &total, &inodes) }
    return VolumeSpace(available: available, total: total, availableInodes: inodes)
  }
}

/// The space of a volume, as a user without privileges has it.
public struct VolumeSpace: Hashable, Sendable {
  /// Bytes that can still be written.
  public let available: UInt64
  /// Bytes in all.
  public let total: UInt64
  /// Files that can still be made; 0 also where the file system does not count them.
  public let availableInodes: UInt64
}
