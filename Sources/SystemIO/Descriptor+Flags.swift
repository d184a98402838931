internal import CLinux

extension Descriptor {
  /// The flags that are set on restored files: all that are recorded. Flags that the file system
  /// does not let a user set are left unchanged or reported.
  package static let settableFlags: UInt32 = FileFlags.kept

  /// Sets and clears the flags in `settableFlags`; the others stay. Immutable and append-only
  /// require privileges and take effect at once. If the file system lacks one of the flags, the
  /// others are set and an error is thrown.
  package func setFlags(_ flags: UInt32) throws(SystemError) {
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

extension Directory {
  /// Sets and clears the directory's flags; see `Descriptor.setFlags(_:)`.
  package func setFlags(_ flags: UInt32) throws(SystemError) { try descriptor.setFlags(flags) }

  /// Clears the flags in `FileFlags.compared` if the file system supports flags.
  package func clearFlags() throws(SystemError) {
    let present = try flags() ?? 0
    if present & FileFlags.compared != 0 { try setFlags(present & ~FileFlags.compared) }
  }
}
