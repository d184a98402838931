internal import CLinux
internal import Glibc

/// What a walk hands over of one folder: some of its entries, with their names where the kernel put
/// them and their status.
///
/// A directory of up to about 2,000 entries comes in one batch, a larger one in several; entries come
/// in the file system's order.
public struct WalkBatch: ~Copyable {
  /// One entry: the place of its name in the batch's `bytes`, and its status.
  public struct Entry: Sendable {
    /// Where the name's bytes lie.
    public let nameRange: Range<Int>
    public let status: FileStatus
    /// When it was last read, in seconds since 1970, as far as the volume notes it.
    public let accessed: Int64
  }

  /// The entries.
  public private(set) var entries: [Entry] = []
  var listing = Listing()

  /// The bytes that the names lie in; they change when the visitor has returned.
  public var bytes: [UInt8] { listing.bytes }

  /// The names that could not be looked at, and why.
  @usableFromInline private(set) var failures: [(name: ByteString, error: SystemError)] = []
  /// How often an entry turned out to be another inode than the listed one though nothing is
  /// mounted there: a file system that lists other numbers, where looking quickly means twice.
  private var surprises = 0

  /// A copy of an entry's name.
  public func name(_ entry: Entry) -> ByteString { ByteString(bytes[entry.nameRange]) }
}

extension WalkBatch {
  /// Looks at each name of the listing of an open directory on a device.
  mutating func look(in directory: Int32, on device: UInt64, path: () -> ByteString) {
    var (found, failed): ([Entry], [(ByteString, SystemError)]) = ([], [])
    swap(&found, &entries)
    found.removeAll(keepingCapacity: true)
    var (status, surprises) = (cl_status(), surprises)
    unsafe listing.withEach { place, name in
      let isQuick = place.type != DT_DIR && place.type != DT_UNKNOWN && surprises < 16
      do throws(SystemError) {
        let asked = try SystemError.check(.status, path().appending(listing.name(place))) {
          unsafe isQuick
            ? cl_look_quickly(directory, name, device, place.inode, &status)
            : cl_look(directory, name, &status)
        }
        if asked > 0, status.mount_root == 0 { surprises += 1 }
        found.append(
          Entry(
            nameRange: place.range, status: FileStatus(status), accessed: status.atime))
      } catch {
        failed.append((listing.name(place), error))
      }
    }
    (entries, failures, self.surprises) = (found, failed, surprises)
  }
}

/// The directory that a batch is from.
public struct WalkDirectory: ~Copyable {
  /// Levels below the root of the walk, 0 for the root.
  public let depth: Int
  /// The path below the walk's root, empty for the root.
  public let relativePath: ByteString
  /// The open directory, for calls on its children.
  public let directory: Directory

  /// Lets go of the descriptor, which is the walk's, without closing it.
  @usableFromInline consuming func release() { directory.release() }
}

/// What a visitor wants entered of a batch.
public struct WalkDescent<State>: ~Copyable {
  @usableFromInline var wanted: [(entry: Int, state: State)] = []
  @usableFromInline var isAbandoned = false

  @inlinable init() {}

  /// Enters the directory at this index of the batch's entries, with a state of the visitor's own.
  @inlinable public mutating func enter(_ entry: Int, with state: State) {
    wanted.append((entry, state))
  }

  /// Ends the listing of the directory and enters none of its directories, those of earlier batches among
  /// them.
  @inlinable public mutating func abandonDirectory() { isAbandoned = true }
}

/// Something in the tree that could not be listed or looked at.
public struct WalkProblem: Sendable {
  /// The path below the walk's root.
  public let path: ByteString
  public let error: SystemError
}

/// What is done with the entries that a walk finds.
public protocol WalkVisitor: ~Copyable {
  /// What the visitor knows of a directory, handed down from `enter`.
  associatedtype State

  /// Takes some entries of a directory and says which directories to enter.
  mutating func visit(
    _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: State,
    descent: inout WalkDescent<State>)

  /// Is told of a directory or an entry that could not be read, by the state of the directory that it is
  /// in or that it is; the walk goes on. What vanished between being listed and being looked at is
  /// no problem and is not told.
  mutating func failed(_ problem: WalkProblem, state: State)

  /// Whether it wants to see no more: then the walk ends. Asked before each directory and after each
  /// batch.
  var isDone: Bool { get }

  /// Whether it wants to leave the directories that are still to be entered to another walk. Asked
  /// before each directory.
  var isYielding: Bool { get }
}

/// A directory below the root that a walk begins at.
public struct WalkStart<State> {
  /// The names from the root down to it; none for the root.
  public let path: [ByteString]
  /// What the visitor knows of it.
  public let state: State

  /// Makes a start.
  @inlinable
  public init(path: [ByteString], state: State) {
    self.path = path
    self.state = state
  }
}

extension WalkVisitor where Self: ~Copyable {
  @inlinable public var isDone: Bool { false }
  @inlinable public var isYielding: Bool { false }
}
