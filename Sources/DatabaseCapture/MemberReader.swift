public import SystemIO

/// Reads one file of a unit, for the one who stores it. Good only during the call that it is given to.
public final class MemberReader {
  /// What the file is of the unit.
  public let member: DatabaseMember
  /// The file's name in its directory.
  public let name: ByteString
  /// The status before the first byte is read; its size is how many bytes are read, unless the file
  /// ends before.
  public let status: FileStatus
  /// When it was opened, by `Host.monotonicSeconds()`: its content is of that time or later.
  public let opened = Host.monotonicSeconds()
  private let file: Descriptor
  /// What is read in place of the file.
  private var copy: Descriptor?
  /// Whether reading ends as soon as the file's content has changed.
  private let mustStand: Bool
  /// When reading has to be done, as the locks are given back then.
  private var end: (deadline: Double, limit: Double)?

  /// Opens a member; nil when it is not there, or no regular file. The database itself must be.
  init?(
    _ member: DatabaseMember, of unit: DatabaseUnit, in directory: borrowing Directory,
    mustStand: Bool = false
  ) throws(SystemError) {
    let name = unit.name(of: member)
    guard let file = try directory.regularFile(name) else {
      guard member == .database else { return nil }
      _ = try directory.status(name)
      throw .replaced(directory.path.appending(name))
    }
    self.member = member
    self.name = name
    self.mustStand = mustStand
    status = try file.status()
    self.file = file
  }

  /// The file's extended attributes.
  public var attributes: ExtendedAttributes { file.attributes }

  /// The flags that chattr(1) sets, nil where there are none.
  public func flags() throws(SystemError) -> UInt32? { try file.flags() }

  /// Goes through everything in order: `take` reads a range of at most 256 KiB and gives how many
  /// bytes came; `hole` gets the lengths of holes.
  public func takePieces(
    take: (Range<UInt64>) throws -> Int, hole: (UInt64) throws -> Void
  ) throws {
    switch copy {
    // Its own extents: those of the file may have changed since.
    case .some(let copy): try takePieces(of: copy, take, hole)
    case nil:
      var lookAgain: UInt64 = Self.stretch
      var at: UInt64 = 0
      try takePieces(
        of: file,
        { range in
          let count = try take(range)
          at += UInt64(count)
          try requireTime()
          if mustStand && at >= lookAgain {
            try requireStanding()
            lookAgain = at + Self.stretch
          }
          return count
        }, hole)
    }
  }

  private func takePieces(
    of content: borrowing Descriptor, _ take: (Range<UInt64>) throws -> Int,
    _ hole: (UInt64) throws -> Void
  ) throws {
    _ = try content.takePieces(
      size: status.size, isSparse: status.allocated < status.size, take: take, hole: hole)
  }

  /// Appends a range of the bytes to an array; fewer only where they end.
  public func read(
    _ range: Range<UInt64>, appendingTo buffer: inout [UInt8]
  ) throws(SystemError) {
    switch copy {
    case .some(let copy):
      try copy.read(count: range.count, at: range.lowerBound, appendingTo: &buffer)
    case nil: try file.read(count: range.count, at: range.lowerBound, appendingTo: &buffer)
    }
  }

  /// Whoever reads a file that must stand still looks at it each time after so many bytes, so as not
  /// to read on for nothing.
  private static let stretch: UInt64 = 16 << 20

  private func requireStanding() throws {
    if Stand(try file.status()) != Stand(status) { throw ContentMoved() }
  }

  /// Has reading end with `TooLate` once so many seconds have passed since `begun`.
  func end(after limit: Double, since begun: Double) { end = (begun + limit, limit) }

  private func requireTime() throws {
    if let end, Host.monotonicSeconds() > end.deadline { throw TooLate(limit: end.limit) }
  }

  /// Makes a reflink of the file without a name and reads that from now on; false where the volume has
  /// none.
  func makeClone(in spool: borrowing Directory) throws -> Bool {
    let copy = try spool.createUnnamed()
    guard try copy.clone(of: file) else { return false }
    self.copy = consume copy
    return true
  }

  /// Copies the file into one without a name and reads that from now on.
  ///
  /// - Throws: `TooLate` if that takes more than `limit` seconds since `begun`.
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
}

/// A file that must stand still was seen to change: there is no use in reading on.
struct ContentMoved: Error {}
