internal import CLinux
internal import Glibc

extension Directory {
  /// Whether the directory's volume records access times (no `noatime`).
  package func notesAccess() throws(SystemError) -> Bool {
    try SystemError.check(.space, path) { cl_notes_access(raw) } != 0
  }

  /// Whether files on the directory's volume may share blocks with others (reflinks).
  package func mayShareBlocks() throws(SystemError) -> Bool {
    try SystemError.check(.space, path) { cl_may_share(raw) } != 0
  }

  /// Returns the status of a child, without following a symbolic link, and its access time in
  /// seconds since 1970.
  package func look(
    _ name: ByteString
  ) throws(SystemError) -> (status: FileStatus, accessed: Int64) {
    var status = cl_status()
    _ = try unsafe call(.status, name) { unsafe cl_look(raw, $0, &status) }
    return (FileStatus(status), status.atime)
  }
}

extension Descriptor {
  /// Returns the number of bytes whose blocks are shared with other files and which removing the
  /// file would not free. 0 if the file system does not report it.
  package func sharedBytes() throws(SystemError) -> UInt64 {
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
