package import SystemIO

/// A reader of one file of a unit. Valid only during the `store` call that receives it.
package final class MemberReader {
  /// The kind of the file.
  package let member: DatabaseMember
  /// The name of the file in its directory.
  package let name: ByteString
  /// The status before the first byte is read. Its size is the number of bytes read, unless the
  /// file ends earlier.
  package private(set) var status: FileStatus
  /// The time of opening by `Host.bootSeconds()`. The content is from this time or later.
  package let opened = Host.bootSeconds()
  private let file: Descriptor
  /// The copy that is read instead of the file; nil if there is none.
  private var copy: Descriptor?
  /// Whether reading fails as soon as the file has changed.
  private let mustStayUnchanged: Bool
  /// The deadline for reading, at which the locks are released, and its limit in seconds.
  private var end: (deadline: Double, limit: Double)?

  /// Opens a member. Returns nil if it does not exist or is not a regular file, which for the
  /// database file is an error.
  init?(
    _ member: DatabaseMember, of unit: DatabaseUnit, in directory: borrowing Directory,
    mustStayUnchanged: Bool = false
  ) throws(SystemError) {
    let name = unit.name(of: member)
    guard let file = try directory.regularFile(name) else {
      guard member == .database else { return nil }
      _ = try directory.status(name)
      throw .replaced(directory.path.appending(name))
    }
    self.member = member
    self.name = name
    self.mustStayUnchanged = mustStayUnchanged
    status = try file.status()
    self.file = file
  }

  /// The extended attributes of the file.
  package var attributes: ExtendedAttributes { file.attributes }

  /// Returns the flags of chattr(1), or nil if the file system has none.
  package func flags() throws(SystemError) -> UInt32? { try file.flags() }

  /// Returns the interrupted transaction over several databases that the journal belongs to, or nil
  /// if it belongs to none. A journal that rolls it back is read without the super-journal's name
  /// from now on.
  ///
  /// The database's locks are held, so that no connection can commit the transaction.
  func settleCommit(
    beside directory: borrowing Directory
  ) throws(SystemError) -> InterruptedCommit? {
    guard member == .journal,
      let (commit, offset) = try InterruptedCommit.find(
        in: file, size: status.size, beside: directory)
    else { return nil }
    if commit.isDecided { status = status.limited(to: offset) }
    return commit
  }

  /// Traverses the content in order. `data` reads a range of at most 256 KiB and returns the number
  /// of bytes read; `hole` receives the lengths of holes.
  package func readExtents(
    data: (Range<UInt64>) throws -> Int, hole: (UInt64) throws -> Void
  ) throws {
    switch copy {
    // The copy's own extents, because those of the file may have changed.
    case .some(let copy): try readExtents(of: copy, data, hole)
    case nil:
      var lookAgain: UInt64 = Self.stretch
      var at: UInt64 = 0
      try readExtents(
        of: file,
        { range in
          let count = try data(range)
          at += UInt64(count)
          try requireTime()
          if mustStayUnchanged && at >= lookAgain {
            try requireUnchanged()
            lookAgain = at + Self.stretch
          }
          return count
        }, hole)
    }
  }

  private func readExtents(
    of content: borrowing Descriptor, _ data: (Range<UInt64>) throws -> Int,
    _ hole: (UInt64) throws -> Void
  ) throws {
    _ = try content.readExtents(
      size: status.size, isSparse: status.allocated < status.size, data: data, hole: hole)
  }

  /// Appends a range of the bytes to an array. Appends fewer only at the end of the content.
  package func read(
    _ range: Range<UInt64>, appendingTo buffer: inout [UInt8]
  ) throws(SystemError) {
    switch copy {
    case .some(let copy):
      try copy.read(count: range.count, at: range.lowerBound, appendingTo: &buffer)
    case nil: try file.read(count: range.count, at: range.lowerBound, appendingTo: &buffer)
    }
  }

  /// The number of bytes after which a file that must not change is checked again, so that reading
  /// can stop early.
  private static let stretch: UInt64 = 16 << 20

  private func requireUnchanged() throws {
    if FileFingerprint.State(try file.status()) != FileFingerprint.State(status) {
      throw ContentChanged()
    }
  }

  /// Sets a limit in seconds after `begun`, after which reading throws `MemberReader.TooLate`.
  func end(after limit: Double, since begun: Double) { end = (begun + limit, limit) }

  private func requireTime() throws {
    if let end, Host.monotonicSeconds() > end.deadline { throw TooLate(limit: end.limit) }
  }

  /// Whether a copy is read instead of the file.
  var hasCopy: Bool {
    switch copy {
    case .some: true
    case nil: false
    }
  }

  /// Creates an unnamed reflink of the file, which is read from now on. Returns false if there
  /// can be none.
  func makeClone(in spool: borrowing Directory) throws -> Bool {
    let copy = try spool.createUnnamed()
    guard try copy.clone(of: file) else { return false }
    self.copy = consume copy
    return true
  }

  /// Copies the file to an unnamed file, which is read from now on.
  ///
  /// - Throws: `MemberReader.TooLate` if that takes more than `limit` seconds since `begun`.
  func makeCopy(in spool: borrowing Directory, since begun: Double, limit: Double) throws {
    let copy = try spool.createUnnamed()
    end(after: limit, since: begun)
    try fill(copy)
    end = nil
    self.copy = consume copy
  }

  private func fill(_ copy: borrowing Descriptor) throws {
    var at: UInt64 = 0
    _ = try file.readPieces(
      size: status.size, isSparse: status.allocated < status.size,
      data: { piece in
        try requireTime()
        try copy.write(piece)
        at += UInt64(piece.count)
      },
      hole: { length in
        at += length
        try copy.seek(to: at)
      })
    try copy.truncate(to: at)
  }

  /// A timeout: reading took longer than the locks may be held.
  struct TooLate: Error {
    /// The limit in seconds.
    let limit: Double
  }

  /// A file that must not change has changed, so reading stops.
  struct ContentChanged: Error {}
}
