package import SystemIO

/// The moves that every operation consists of. Each is a single system call that succeeds or has no
/// effect.
extension Directory {
  /// Moves a child to another directory, where the new name must not exist.
  package func add(
    _ name: ByteString, to target: borrowing Directory, as newName: ByteString? = nil
  ) throws(SystemError) {
    let newName = newName ?? name
    do throws(SystemError) {
      try rename(name, to: newName, in: target, replacing: false)
    } catch {
      // Not every file system supports a rename that refuses to replace.
      guard error.isUnsupported, try target.statusIfPresent(newName) == nil else { throw error }
      try rename(name, to: newName, in: target)
    }
  }

  /// Moves a staged child to its place in `target`. No entry there is ever replaced that is not kept:
  /// the entries are exchanged, and the one that comes out is examined.
  ///
  /// - Parameter kept: the entry in its place, if that is kept under a second name; nil if nothing is
  ///   there.
  package func place(
    _ name: ByteString, in target: borrowing Directory, as newName: ByteString,
    over kept: KeptEntry?, _ note: OpenedNote?
  ) throws(SystemError) -> Placing {
    if let kept, kept.keepsFirstName {
      do throws(SystemError) {
        try exchange(name, with: newName, in: target)
        return try settle(name, in: target, as: newName, over: kept)
      } catch {
        // Not every file system can exchange entries. The present one may be gone by now.
        guard error.operation == .rename,
          error.isUnsupported || error.isOnAnotherVolume || error.isAbsent
        else { throw error }
        if let present = try target.statusIfPresent(newName) {
          guard present.identity == kept.identity else { return .occupied }
          try rename(name, to: newName, in: target)
          return .placed
        }
      }
    }
    do throws(SystemError) {
      try addOpened(name, to: target, as: newName, note)
      return .placed
    } catch {
      guard error.isExisting else { throw error }
      return .occupied
    }
  }

  /// Exchanges a child with an entry of another kind in the target directory.
  package func swap(_ name: ByteString, in target: borrowing Directory) throws(SystemError) {
    do throws(SystemError) {
      try exchange(name, with: name, in: target)
    } catch {
      guard error.isUnsupported else { throw error }
      let aside = ByteString(".sandboxctl-" + Host.randomHex(bytes: 8))
      try target.rename(name, to: aside, in: self, replacing: false)
      do throws(SystemError) {
        try rename(name, to: name, in: target, replacing: false)
      } catch {
        try? self.rename(aside, to: name, in: target, replacing: false)
        throw error
      }
    }
  }

  /// Moves a child that may be a directory without write permission for its owner. Moving a
  /// directory changes its `..`, so the directory is made writable during the move.
  func addOpened(
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

  /// Preserves an entry before its name is reused. A file or symbolic link gets a second name in
  /// `directory`, so that its own name always exists; a directory, or an entry that only has to go
  /// (`leaving`), is moved there. If the name is taken, a number is appended. Returns the kept entry
  /// in `directory`, or nil if the entry does not exist.
  ///
  /// - Parameter note: the note that records a directory opened for the move; nil without a
  ///   journal.
  @discardableResult
  package func preserve(
    _ name: ByteString, in directory: borrowing Directory, as newName: ByteString, leaving: Bool,
    _ note: OpenedNote?
  ) throws(SystemError) -> KeptEntry? {
    guard let status = try statusIfPresent(name) else { return nil }
    for number in 0..<KeptEntry.numbers {
      let free = KeptEntry.name(newName, number)
      do throws(SystemError) {
        if !leaving, status.kind != .directory {
          do throws(SystemError) {
            try directory.createHardLink(free, to: name, in: self)
            return KeptEntry(
              name: free, identity: try directory.status(free).identity, keepsFirstName: true)
          } catch {
            // On a volume without hard links, and for another user's file, the entry is renamed.
            if error.endsEverything || error.isExisting { throw error }
          }
        }
        try addOpened(name, to: directory, as: free, note)
        return KeptEntry(
          name: free, identity: try directory.status(free).identity, keepsFirstName: false)
      } catch {
        guard error.isExisting else { throw error }
        if try directory.statusIfPresent(free)?.identity == status.identity {
          // It got its second name before an interruption.
          if leaving { try remove(name) }
          return KeptEntry(name: free, identity: status.identity, keepsFirstName: !leaving)
        }
      }
    }
    throw SystemError.replaced(path.appending(name))
  }
}

extension Directory {
  /// Removes the entry that an exchange brought here if it is the kept one. An error leaves the
  /// entries as they were before.
  private func settle(
    _ name: ByteString, in target: borrowing Directory, as newName: ByteString,
    over kept: KeptEntry
  ) throws(SystemError) -> Placing {
    do throws(SystemError) {
      if try status(name).identity != kept.identity { return .exchanged }
      try remove(name)
      return .placed
    } catch {
      exchangeBack(name, with: newName, in: target)
      throw error
    }
  }

  /// Exchanges entries again after an exchange whose result cannot be kept.
  package func exchangeBack(
    _ name: ByteString, with other: ByteString, in target: borrowing Directory
  ) {
    try? exchange(name, with: other, in: target)
  }
}

/// An entry that is kept in another directory before its name is reused.
package struct KeptEntry: Hashable, Sendable {
  /// The name in that directory.
  package let name: ByteString
  package let identity: FileIdentity
  /// Whether it has its first name as well.
  package let keepsFirstName: Bool

  /// The number of names that are tried.
  static let numbers = 1000

  /// Returns a name for kept entries, by the number of those that are taken.
  static func name(_ name: ByteString, _ number: Int) -> ByteString {
    number == 0 ? name : ByteString(Array(name.bytes) + Array(".\(number)".utf8))
  }

  /// Whether an entry is kept in a directory under a name, or under that name with a number.
  static func isKept(
    _ identity: FileIdentity, as name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) -> Bool {
    for number in 0..<numbers {
      guard let status = try directory.statusIfPresent(Self.name(name, number)) else {
        return false
      }
      if status.identity == identity { return true }
    }
    return false
  }
}

/// The result of moving a staged entry to its place.
package enum Placing: Sendable {
  /// It is in its place.
  case placed
  /// It is still staged: another entry has appeared in its place, which must be kept first.
  case occupied
  /// It is in its place, and another entry, which had appeared there, has the staged name now and
  /// must be kept.
  case exchanged
}

extension Directory {
  /// The number of times that an entry which appears in the place of another one is kept.
  package static var placings: Int { 3 }
}
