internal import SystemIO

/// The moves of which every operation is made. Each is one call that happens or does not.
extension Directory {
  /// Moves a child to a directory where nothing of that name is.
  func add(
    _ name: ByteString, to target: borrowing Directory, as newName: ByteString? = nil
  ) throws(SystemError) {
    let newName = newName ?? name
    do throws(SystemError) {
      try rename(name, to: newName, in: target, replacing: false)
    } catch {
      // Not every file system can say no by itself.
      guard error.isUnsupported, try target.statusIfPresent(newName) == nil else { throw error }
      try rename(name, to: newName, in: target)
    }
  }

  /// Gives a file or a link a second name, so that the first can get another content in one step;
  /// where a volume knows no second names it is renamed.
  func putAside(_ name: ByteString, as aside: ByteString) throws(SystemError) {
    do throws(SystemError) {
      try createHardLink(aside, to: name, in: self)
    } catch {
      try rename(name, to: aside, in: self, replacing: false)
    }
  }

  /// Moves a child to the place of something of another kind, which comes here in exchange.
  func swap(_ name: ByteString, in target: borrowing Directory) throws(SystemError) {
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

  /// Moves a child that may be a directory which its owner must not write to: moving one changes its
  /// `..`, so that it is open to its owner meanwhile.
  func addOpened(
    _ name: ByteString, to target: borrowing Directory, as newName: ByteString, _ note: OpenedNote?
  ) throws(SystemError) {
    do throws(SystemError) {
      try add(name, to: target, as: newName)
    } catch {
      guard error.isRefused, let status = try? status(name), status.kind == .directory,
        status.permissions & 0o200 == 0
      else { throw error }
      try whileOpen(name, to: target, as: newName, note) { () throws(SystemError) in
        try add(name, to: target, as: newName)
      }
    }
  }

  /// Keeps what stands under a name before something else gets it: a file or a link by a second name
  /// in `place`, so that there is no moment without it; a directory, or what is only to go (`leaving`), by
  /// moving it there. A name that is taken gets a number. What is not there needs no keeping. Gives the
  /// name that it has there.
  ///
  /// - Parameter note: where a directory is noted that is opened for it; nothing where there is no journal.
  @discardableResult
  func keep(
    _ name: ByteString, in place: borrowing Directory, as newName: ByteString, leaving: Bool,
    _ note: OpenedNote?
  ) throws(SystemError) -> ByteString? {
    guard let status = try statusIfPresent(name) else { return nil }
    for number in 0..<1000 {
      let free = number == 0 ? newName : ByteString(Array(newName.bytes) + Array(".\(number)".utf8))
      do throws(SystemError) {
        if !leaving, status.kind != .directory {
          do throws(SystemError) {
            try place.createHardLink(free, to: name, in: self)
            return free
          } catch {
            // A volume without second names, or a file of somebody else's, is renamed.
            if error.endsEverything || error.isExisting { throw error }
          }
        }
        try addOpened(name, to: place, as: free, note)
        return free
      } catch {
        guard error.isExisting else { throw error }
        if try place.statusIfPresent(free)?.identity == status.identity {
          // Before an interruption it got its second name already.
          if leaving { try remove(name) }
          return free
        }
      }
    }
    throw SystemError.replaced(path.appending(name))
  }
}
