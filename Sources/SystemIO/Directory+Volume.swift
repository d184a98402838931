internal import CLinux
internal import Glibc

extension Directory {
  /// Whether the directory's volume notes when files are read (no `noatime`).
  public func notesAccess() throws(SystemError) -> Bool {
    try SystemError.check(.space, path) { cl_notes_access(raw) } != 0
  }

  /// Whether files on the directory's volume may share blocks with others (reflinks).
  public func mayShareBlocks() throws(SystemError) -> Bool {
    try SystemError.check(.space, path) { cl_may_share(raw) } != 0
  }

  /// The status of a child, a link's own, and when it was last read, in seconds since 1970.
  public func look(
    _ name: ByteString
  ) throws(SystemError) -> (status: FileStatus, accessed: Int64) {
    var status = cl_status()
    _ = try unsafe call(.status, name) { unsafe cl_look(raw, $0, &status) }
    return (FileStatus(status), status.atime)
  }
}

extension Descriptor {
  /// Bytes of the file whose blocks other files have, too: those that its removal does not give
  /// back. 0 where the file system does not tell.
  public func sharedBytes() throws(SystemError) -> UInt64 {
    var bytes: UInt64 = 0
    do {
      _ = try SystemError.check(.readFlags, name) { unsafe cl_shared_bytes(raw, &bytes) }
    } catch {
      if error.isUnsupported { return 0 }
      throw error
    }
    return bytes
  }
}
