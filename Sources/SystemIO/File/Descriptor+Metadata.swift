internal import CLinux
internal import Synchronization

/// An open file or directory whose metadata can be set.
public protocol MetadataTarget: ~Copyable {
  /// The extended attributes.
  var attributes: ExtendedAttributes { get }
  /// Returns the current status.
  func status() throws(SystemError) -> FileStatus
  /// Sets the owner. This may clear the set-user-ID and set-group-ID bits.
  func setOwner(user: UInt32, group: UInt32) throws(SystemError)
  /// Sets the permission bits.
  func setPermissions(_ bits: UInt16) throws(SystemError)
  /// Sets the modification time.
  func setModified(_ time: Timestamp) throws(SystemError)
}

extension Descriptor: MetadataTarget {
  /// Sets the permission bits.
  public func setPermissions(_ bits: UInt16) throws(SystemError) {
    _ = try SystemError.check(.setMode, name) { cl_chmod(raw, UInt32(bits)) }
  }

  /// Sets the owner. This may clear the set-user-ID and set-group-ID bits, so set the mode
  /// afterwards.
  public func setOwner(user: UInt32, group: UInt32) throws(SystemError) {
    _ = try SystemError.check(.setOwner, name) { unsafe cl_chown_at(raw, "", user, group) }
  }

  /// Sets the modification time; the access time stays.
  public func setModified(_ time: Timestamp) throws(SystemError) {
    _ = try SystemError.check(.setTimes, name) {
      cl_set_mtime_open(raw, time.seconds, time.nanoseconds)
    }
  }

  /// Returns the flags set by chattr(1), limited to `FileFlags.kept`, or nil if the file system or
  /// the kind of file has none, or none can be read. Unknown ones count as not set.
  public func flags() throws(SystemError) -> UInt32? { try knownFlags()?.bits }

  /// Returns the flags set by chattr(1) and the mask of those that are known, both limited to
  /// `FileFlags.kept`; nil if there are none or none is known.
  ///
  /// If a sandbox or the file system forbids the query (`FS_IOC_GETFLAGS`), only the flags that
  /// statx(2) reports are known, and the file is recorded in `UnreadFlags`.
  public func knownFlags() throws(SystemError) -> (bits: UInt32, known: UInt32)? {
    do {
      let flags = try SystemError.check(.readFlags, name) { cl_flags(raw) }
      return (UInt32(truncatingIfNeeded: flags) & FileFlags.kept, FileFlags.kept)
    } catch {
      if error.isUnsupported { return nil }
      // The file is open, so its mode is not the reason.
      guard error.isRefused else { throw error }
    }
    UnreadFlags.record(name)
    var known: UInt32 = 0
    let reported = unsafe cl_reported_flags(raw, &known)
    guard reported >= 0, known != 0 else { return nil }
    return (UInt32(truncatingIfNeeded: reported), known)
  }

  /// The extended attributes of the open file.
  public var attributes: ExtendedAttributes {
    ExtendedAttributes(of: raw, name: name)
  }

  /// The flags that are set on restored files: all that are recorded. Flags that the file system
  /// does not let a user set are left unchanged or reported.
  public static let settableFlags: UInt32 = FileFlags.kept

  /// Sets and clears the flags in `settableFlags`; the others stay. Immutable and append-only
  /// require privileges and take effect at once. If the file system lacks one of the flags, the
  /// others are set and an error is thrown.
  public func setFlags(_ flags: UInt32) throws(SystemError) {
    let present = UInt32(
      truncatingIfNeeded: try SystemError.check(.readFlags, name) { cl_flags(raw) })
    let wanted = present & ~Self.settableFlags | flags & Self.settableFlags
    if wanted == present { return }
    do {
      try replaceFlags(by: wanted)
    } catch {
      guard error.isUnsupported else { throw error }
      var reached = present
      for bit in 0..<32 where (wanted ^ present) >> bit & 1 == 1 {
        let next = reached ^ 1 << bit
        if (try? replaceFlags(by: next)) != nil { reached = next }
      }
      throw error
    }
  }

  private func replaceFlags(by flags: UInt32) throws(SystemError) {
    _ = try SystemError.check(.setFlags, name) {
      cl_set_flags(raw, Int32(bitPattern: flags))
    }
  }
}

/// The files whose flags could not be read completely although they could be opened.
public enum UnreadFlags {
  private static let noted = Mutex<ByteString?>(nil)

  /// The path of the first such file, or nil if there is none.
  public static var first: ByteString? { noted.withLock { $0 } }

  static func record(_ path: ByteString) { noted.withLock { $0 = $0 ?? path } }
}

/// The flag bits of `FS_IOC_GETFLAGS` (ioctl_iflags(2)).
public enum FileFlags {
  /// The flags that a user sets and that mean the same on every file system. The others describe
  /// how a file system stores the file.
  public static let kept: UInt32 =
    secureDeletion | undelete | compressed | synchronous | immutable | append | noDump
    | noAccessTime | noCompression | journalData | noTail | synchronousDirectory | topDirectory
    | noCopyOnWrite

  /// The flags that are compared with the recorded ones. Compression and copy-on-write are
  /// excluded: btrfs also sets and clears them itself (btrfs(5)), and cannot change them for a file
  /// that has content.
  public static let compared =
    Descriptor.settableFlags & ~(compressed | noCompression | noCopyOnWrite)

  /// Cannot be changed, renamed or removed.
  public static let immutable: UInt32 = 0x10
  /// Can only be appended to.
  public static let append: UInt32 = 0x20
  /// Excluded by dump(8).
  public static let noDump: UInt32 = 0x40
  /// Reading does not update the access time.
  public static let noAccessTime: UInt32 = 0x80
  /// btrfs overwrites data in its place. It ignores the flag, without an error, for a file that has
  /// content.
  public static let noCopyOnWrite: UInt32 = 0x80_0000

  private static let secureDeletion: UInt32 = 0x1
  private static let undelete: UInt32 = 0x2
  private static let compressed: UInt32 = 0x4
  private static let synchronous: UInt32 = 0x8
  private static let noCompression: UInt32 = 0x400
  private static let journalData: UInt32 = 0x4000
  private static let noTail: UInt32 = 0x8000
  private static let synchronousDirectory: UInt32 = 0x10000
  private static let topDirectory: UInt32 = 0x20000
}
