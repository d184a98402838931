internal import CLinux
internal import Glibc

/// Entries of one directory: their names, in the kernel's buffer, and their status.
///
/// A directory of up to about 2,000 entries comes in one batch, a larger one in several. Entries
/// are in the file system's order.
public struct WalkBatch: ~Copyable {
  /// An entry: the range of its name in the batch's `bytes`, and its status.
  public struct Entry: Sendable {
    /// The range of the name's bytes.
    public let nameRange: Range<Int>
    public let status: FileStatus
    /// The access time in seconds since 1970, as far as the volume records it.
    public let accessed: Int64
  }

  /// The entries.
  public private(set) var entries: [Entry] = []
  var listing = Directory.Listing()

  /// The bytes of the names, valid until the visitor returns.
  public var bytes: [UInt8] { listing.bytes }

  /// The names whose status could not be read, with the listed inode numbers, and the errors.
  @usableFromInline private(set) var failures: [Failure] = []

  @usableFromInline typealias Failure = (name: ByteString, inode: UInt64, error: SystemError)
  /// The number of entries whose inode differed from the listed one although nothing is mounted
  /// there. On such a file system the quick lookup needs two calls.
  private var surprises = 0

  /// Returns a copy of an entry's name.
  public func name(_ entry: Entry) -> ByteString { ByteString(bytes[entry.nameRange]) }
}

extension WalkBatch {
  /// Reads the status of each listed name of an open directory on a device.
  ///
  /// - Parameter readsFlags: whether the flags of files are needed, which the quick lookup lacks.
  mutating func readStatuses(
    in directory: Int32, on device: UInt64, withFlags readsFlags: Bool, path: () -> ByteString
  ) {
    var (found, failed): ([Entry], [Failure]) = ([], [])
    swap(&found, &entries)
    found.removeAll(keepingCapacity: true)
    var (status, surprises) = (cl_status(), surprises)
    unsafe listing.withEach { child, name in
      let isQuick =
        child.type != DT_DIR && child.type != DT_UNKNOWN && surprises < 16 && !readsFlags
      do throws(SystemError) {
        let asked = try SystemError.check(.status, path().appending(listing.name(child))) {
          unsafe isQuick
            ? cl_lstat_listed(directory, name, device, child.inode, &status)
            : cl_lstat(directory, name, &status)
        }
        if asked > 0, status.mount_root == 0 { surprises += 1 }
        found.append(
          Entry(
            nameRange: child.range, status: FileStatus(status), accessed: status.atime))
      } catch {
        failed.append((listing.name(child), child.inode, error))
      }
    }
    (entries, failures, self.surprises) = (found, failed, surprises)
  }
}

/// The directory of a batch.
public struct WalkDirectory: ~Copyable {
  /// The number of levels below the root of the walk, 0 for the root.
  public let depth: Int
  /// The path relative to the root of the walk, empty for the root.
  public let relativePath: ByteString
  /// The open directory, for calls on its children.
  public let directory: Directory

  /// Releases the descriptor, which the walk owns, without closing it.
  @usableFromInline consuming func release() { directory.release() }
}

/// The directories of a batch to enter.
public struct WalkDescent<State>: ~Copyable {
  @usableFromInline var wanted: [(entry: Int, state: State)] = []
  @usableFromInline var isAbandoned = false

  @inlinable init() {}

  /// Enters the directory at this index of the batch's entries, with a state for the visitor.
  @inlinable public mutating func enter(_ entry: Int, with state: State) {
    wanted.append((entry, state))
  }

  /// Ends the listing of the directory and enters none of its subdirectories, including those of
  /// earlier batches.
  @inlinable public mutating func abandonDirectory() { isAbandoned = true }
}

/// An entry or a directory that could not be read.
public struct WalkProblem: Sendable {
  /// The path relative to the root of the walk.
  public let path: ByteString
  public let error: SystemError
}

/// The receiver of the entries that a walk finds.
public protocol WalkVisitor: ~Copyable {
  /// The visitor's state for a directory, passed to `enter`.
  associatedtype State

  /// Receives entries of a directory and selects the directories to enter.
  mutating func visit(
    _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: State,
    descent: inout WalkDescent<State>)

  /// Receives a directory or an entry that could not be read, with the state of that directory or
  /// of the entry's directory; the walk continues. Entries that vanish after they were listed are
  /// passed to `vanished` and `lost` instead.
  mutating func failed(_ problem: WalkProblem, state: State)

  /// Receives an entry whose name was listed, but that no longer had a status: its inode number, if
  /// the file system lists the true one, and the state of its directory.
  mutating func vanished(_ name: ByteString, inode: UInt64, state: State)

  /// Receives the state of a directory that was passed to `visit`, but was removed or renamed
  /// before it was entered or completely listed.
  mutating func lost(state: State)

  /// Whether a directory that was replaced by another one before it was entered is lost. Otherwise
  /// the other one is walked.
  static var isStrict: Bool { get }

  /// Whether to end the walk. Called before each directory and after each batch.
  var isDone: Bool { get }

  /// Whether to leave the remaining directories to another walk. Called before each directory.
  var isYielding: Bool { get }
}

/// A directory at which a walk begins.
public struct WalkStart<State> {
  /// The name of the directory; empty for the root.
  public let name: ByteString
  /// The number of levels below the root, 0 for the root.
  public let depth: Int
  /// The visitor's state for the directory.
  public let state: State
  /// The identity of the directory, or nil if any will do.
  public let identity: FileIdentity?

  /// Creates a start.
  @inlinable public init(
    name: ByteString, depth: Int, state: State, identity: FileIdentity? = nil
  ) {
    self.name = name
    self.depth = depth
    self.state = state
    self.identity = identity
  }
}

extension WalkVisitor where Self: ~Copyable {
  @inlinable public mutating func vanished(_ name: ByteString, inode: UInt64, state: State) {}
  @inlinable public mutating func lost(state: State) {}
  @inlinable public static var isStrict: Bool { false }
  @inlinable public var isDone: Bool { false }
  @inlinable public var isYielding: Bool { false }
}
