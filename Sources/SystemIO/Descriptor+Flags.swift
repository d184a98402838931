internal import CLinux

extension Descriptor {
  /// The flags that are set on restored files (`ioctl_iflags(2)`): compressed, synchronous,
  /// immutable, append only, not dumped, without access times, no copy on write, and for folders
  /// synchronous. The kernel's own, as for extents and encryption, are none of them.
  public static let settableFlags: UInt32 =
    0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80 | 0x80_0000 | 0x1_0000

  /// Sets and clears the flags of `settableFlags`; the others stay. Immutable and append only need
  /// privileges, and what they forbid is forbidden at once.
  public func setFlags(_ flags: UInt32) throws(SystemError) {
    let present = UInt32(try SystemError.check(.readFlags, name) { cl_flags(raw) })
    let wanted = present & ~Self.settableFlags | flags & Self.settableFlags
    if wanted == present { return }
    _ = try SystemError.check(.setFlags, name) {
      cl_set_flags(raw, Int32(bitPattern: wanted))
    }
  }
}

extension Folder {
  /// Sets and clears the folder's flags, as `Descriptor.setFlags(_:)` does a file's.
  public func setFlags(_ flags: UInt32) throws(SystemError) { try descriptor.setFlags(flags) }
}
