/// What a walk hands over of one folder: some of its entries, with their names where the kernel put
/// them and their status.
///
/// A folder of up to about 2,000 entries comes in one batch, a larger one in several; entries come
/// in the file system's order.
public struct WalkBatch: ~Copyable {
  /// One entry: the place of its name in the batch's `bytes`, and its status.
  public struct Entry: Sendable {
    /// Where the name's bytes lie.
    public let nameRange: Range<Int>
    public let status: FileStatus
  }

  /// The entries.
  public internal(set) var entries: [Entry] = []
  var listing = Listing()

  /// The bytes that the names lie in; they change when the visitor has returned.
  public var bytes: [UInt8] { listing.bytes }

  /// A copy of an entry's name.
  public func name(_ entry: Entry) -> ByteString { ByteString(bytes[entry.nameRange]) }
}

/// The folder that a batch is from.
public struct WalkFolder: ~Copyable {
  /// Levels below the root of the walk, 0 for the root.
  public let depth: Int
  /// The path below the walk's root, empty for the root.
  public let relativePath: ByteString
  /// The open folder, for calls on its children.
  public let folder: Folder

  /// Lets go of the descriptor, which is the walk's, without closing it.
  consuming func release() { folder.release() }
}

/// What a visitor wants entered of a batch.
public struct WalkDescent<State>: ~Copyable {
  private(set) var wanted: [(entry: Int, state: State)] = []

  /// Enters the folder at this index of the batch's entries, with a state of the visitor's own.
  public mutating func enter(_ entry: Int, with state: State) {
    wanted.append((entry, state))
  }
}

/// Something in the tree that could not be listed or looked at.
public struct WalkProblem: Sendable {
  /// The path below the walk's root.
  public let path: ByteString
  public let error: SystemError
}

/// What is done with the entries that a walk finds.
public protocol WalkVisitor: ~Copyable {
  /// What the visitor knows of a folder, handed down from `enter`.
  associatedtype State

  /// Takes some entries of a folder and says which folders to enter.
  mutating func visit(
    _ batch: borrowing WalkBatch, of folder: borrowing WalkFolder, state: State,
    descent: inout WalkDescent<State>)

  /// Is told of a folder or an entry that could not be read, by the state of the folder that it is
  /// in or that it is; the walk goes on. What vanished between being listed and being looked at is
  /// no problem and is not told.
  mutating func failed(_ problem: WalkProblem, state: State)
}
