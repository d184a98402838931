package import SystemIO

/// The moves that every operation consists of. Each is a single system call that succeeds or has no
/// effect.
extension Directory {
  /// Moves a child to another directory, where the new name must not exist.
  package func add(
    _ name: ByteString, to target: borrowing Directory, as newName: ByteString? = nil
  ) throws(SystemError) {
    try renameWithoutReplacing(name, to: newName ?? name, in: target)
  }

  /// Exchanges a child with an entry of another kind in the target directory.
  package func swap(_ name: ByteString, in target: borrowing Directory) throws(SystemError) {
    do throws(SystemError) {
      try exchange(name, with: name, in: target)
    } catch {
      guard error.isUnsupported else { throw error }
      let aside = ByteString(".sandboxctl-" + Host.randomHex(bytes: 8))
      try target.add(name, to: self, as: aside)
      do throws(SystemError) {
        try add(name, to: target)
      } catch {
        try? add(aside, to: target, as: name)
        throw error
      }
    }
  }

  /// Moves a child that may be a directory without write permission for its owner. Moving a
  /// directory changes its `..`, so the directory is made writable during the move.
  package func addOpened(
    _ name: ByteString, to target: borrowing Directory, as newName: ByteString, _ note: OpenedNote?
  ) throws(SystemError) {
    do throws(SystemError) {
      try add(name, to: target, as: newName)
    } catch {
      guard error.isRefused, let status = try? status(name), status.kind == .directory,
        status.permissions & 0o200 == 0
      else { throw error }
      try whileOpen(name, to: target, as: newName, note: note) { () throws(SystemError) in
        try add(name, to: target, as: newName)
      }
    }
  }

  /// Preserves the entry at a name by `preserve` before a new entry of a kind is moved there.
  /// Repeats this if another entry has appeared since, which the rename that follows would replace.
  ///
  /// - Parameter preserve: whether the entry has to leave the name, because only one of the two is
  ///   a directory.
  /// - Returns: whether the name still has the preserved entry.
  /// - Throws: an error if the entry that has appeared was replaced as well, and any error of
  ///   `preserve`.
  package func preservePresent(
    _ name: ByteString, for kind: FileKind,
    _ preserve: (_ leaving: Bool) throws(SystemError) -> Void
  ) throws(SystemError) -> Bool {
    var kept: FileIdentity?
    for _ in 0..<3 {
      guard let present = try statusIfPresent(name) else { return false }
      if present.identity == kept { return true }
      try preserve((present.kind == .directory) != (kind == .directory))
      kept = present.identity
    }
    throw SystemError.replaced(path.appending(name))
  }

  /// Preserves an entry before its name is reused. A file or symbolic link gets a second name in
  /// `directory`, so that its own name always exists; a directory, or an entry that only has to go
  /// (`leaving`), is moved there. If the name is taken, a number is appended. Returns the name in
  /// `directory`, or nil if the entry does not exist.
  ///
  /// - Parameter note: the note that records a directory opened for the move; nil without a
  ///   journal.
  @discardableResult
  package func preserve(
    _ name: ByteString, in directory: borrowing Directory, as newName: ByteString, leaving: Bool,
    _ note: OpenedNote?
  ) throws(SystemError) -> ByteString? {
    guard let status = try statusIfPresent(name) else { return nil }
    for number in 0..<1000 {
      let free = newName.numbered(number)
      do throws(SystemError) {
        if !leaving, status.kind != .directory {
          do throws(SystemError) {
            try directory.createHardLink(free, to: name, in: self)
            return free
          } catch {
            // On a volume without hard links, and for another user's file, the entry is renamed.
            if error.endsEverything || error.isExisting { throw error }
          }
        }
        try addOpened(name, to: directory, as: free, note)
        return free
      } catch {
        guard error.isExisting else { throw error }
        if try directory.statusIfPresent(free)?.identity == status.identity {
          // It got its second name before an interruption.
          if leaving { try remove(name) }
          return free
        }
      }
    }
    throw SystemError.replaced(path.appending(name))
  }

  /// Gives a file or a symbolic link a second name in `directory`, as `preserve` does; that finds
  /// the name later. Returns the name, or nil if the entry cannot have one.
  func addSecondName(
    of name: ByteString, in directory: borrowing Directory, as newName: ByteString
  ) throws(SystemError) -> ByteString? {
    guard let status = try statusIfPresent(name), status.kind != .directory else { return nil }
    for number in 0..<1000 {
      let free = newName.numbered(number)
      do throws(SystemError) {
        try directory.createHardLink(free, to: name, in: self)
        return free
      } catch {
        guard error.isExisting else { return nil }
        if try directory.statusIfPresent(free)?.identity == status.identity { return free }
      }
    }
    return nil
  }
}

extension ByteString {
  /// Returns the name with a number, if it is not 0.
  fileprivate func numbered(_ number: Int) -> ByteString {
    number == 0 ? self : ByteString(Array(bytes) + Array(".\(number)".utf8))
  }
}
