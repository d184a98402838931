internal import Glibc

/// A failed system call: the operation, the path and the reason.
public struct SystemError: Error, Hashable, Sendable {
  /// The operation that failed.
  public let operation: Operation
  /// The path as far as it is known: the name given to the call, completed by its callers.
  public let path: ByteString
  /// The error number (errno).
  public let number: Int32

  /// Creates an error of a failed call.
  public init(_ operation: Operation, _ path: ByteString, number: Int32) {
    self.operation = operation
    self.path = path
    self.number = number
  }

  /// The operation of a system call, as text for messages and as the name of a fault point.
  public enum Operation: String, CaseIterable, Sendable {
    case open, read, write, list, link, rename, remove, lock, map, clone, trust
    case status = "get the status of"
    case close = "close"
    case create = "create"
    case createDirectory = "create the directory"
    case createLink = "create the symbolic link"
    case createSpecial = "create the special file"
    case readLink = "read the link"
    case sync = "write to disk"
    case seek = "find the holes of"
    case truncate = "set the size of"
    case setMode = "set the mode of"
    case setOwner = "set the owner of"
    case setTimes = "set the times of"
    case readAttributes = "read the attributes of"
    case setAttributes = "set the attributes of"
    case readFlags = "read the flags of"
    case setFlags = "set the flags of"
    case space = "get the free space of"
    case random = "get random bytes from"
    case startThread = "start a thread for"
    case watchSignals = "watch the signals of"
    case run = "run the program"
  }
}

extension SystemError {
  /// Runs a call that returns a result or a negative error number, after its fault point.
  @inline(__always)
  static func check(
    _ operation: Operation, _ path: @autoclosure () -> ByteString, running call: () -> Int
  ) throws(SystemError) -> Int {
    if Faults.areArmed, let number = Faults.next(operation) {
      throw SystemError(operation, path(), number: number)
    }
    let result = call()
    if result < 0 { throw SystemError(operation, path(), number: Int32(-result)) }
    return result
  }

  /// Runs a call whose failure is a common answer: the negative error numbers accepted by
  /// `isAnswer` are returned without the cost of throwing.
  @inline(__always)
  static func query(
    _ operation: Operation, _ path: @autoclosure () -> ByteString, unless isAnswer: (Int32) -> Bool,
    running call: () -> Int
  ) throws(SystemError) -> Int {
    let injected = Faults.areArmed ? Faults.next(operation) : nil
    let result = injected.map { -Int($0) } ?? call()
    if result < 0, !isAnswer(Int32(-result)) {
      throw SystemError(operation, path(), number: Int32(-result))
    }
    return result
  }
}

extension SystemError: CustomStringConvertible {
  /// The whole message: "cannot open '/a/b': permission denied".
  public var description: String { "cannot \(operation.rawValue) '\(path)': \(reason)" }

  /// The reason for the failure.
  public var reason: String {
    if isForeignOwner { return "it belongs to another user, for example root" }
    if isUnmovable {
      return "it is on another mount or subvolume, or a directory in the lower layer of an overlay"
    }
    if isProcessLimit { return "the limit of processes and threads, or of memory, is reached" }
    if number == ENOSPC, operation == .setAttributes {
      return "the volume is full, or its file system cannot store attributes of this size"
    }
    if number == EFBIG, operation == .write || operation == .truncate {
      return "it is larger than the file system, or the limit of file sizes, allows"
    }
    return isDistrust
      ? "it belongs to another user, or other users can write to it" : Self.reason(of: number)
  }

  /// The remedy, or nil if there is none to suggest.
  public var hint: String? {
    if isForeignOwner {
      guard let device = ShellWord.argument(path.parent), let own = ShellWord.argument(path) else {
        return "change its owner to the device's"
      }
      return "change its owner to the device's: sudo chown -R --reference=\(device) \(own)"
    }
    if isDistrust {
      return "run as its owner; if it was copied together with the device, remove it"
    }
    if isProcessLimit {
      return "raise the limit of processes (ulimit -u) or of memory"
    }
    return switch number {
    case EACCES, EPERM: "check the owner and the mode, or run as the user who owns it"
    case ENOSPC: "free space or inodes on that volume, or choose another volume"
    case EDQUOT: "free space within the quota, or request a larger one"
    case EROFS: "mount it read-write, or choose another location"
    case EMFILE, ENFILE: "raise the limit of open files (ulimit -n)"
    case EFBIG where operation == .write || operation == .truncate:
      "check the limit of file sizes (ulimit -f), and that of the file system"
    case EIO: "the device may be failing: check the system log"
    case ENOENT: "check the spelling of the path"
    case ESPIPE: "name a regular file, or save the output of the pipe to a file first"
    default: nil
    }
  }

  /// Whether the name does not exist, in a directory that may exist or not.
  public var isAbsent: Bool { number == ENOENT }

  /// Whether the path does not exist or no longer exists.
  public var isMissing: Bool { Self.isMissing(number) }

  static func isMissing(_ number: Int32) -> Bool { number == ENOENT || number == ENOTDIR }

  /// Whether every further write to that volume will fail: it is full or read-only.
  public var endsEverything: Bool { isFull || number == EROFS }

  /// Whether the volume, or the user's quota on it, is full.
  public var isFull: Bool { number == ENOSPC || number == EDQUOT }

  /// Whether the device or the file system has lost the data: a bad sector, or damaged structures
  /// or checksums that ext4, XFS and Btrfs report.
  public var isLoss: Bool { number == EIO || number == EUCLEAN || number == EBADMSG }

  /// Returns the error for a path with too many symbolic links.
  public static func loop(_ path: ByteString) -> SystemError {
    SystemError(.status, path, number: ELOOP)
  }

  /// Returns the error for a file that was replaced in the meantime.
  public static func replaced(_ path: ByteString) -> SystemError {
    SystemError(.read, path, number: ESTALE)
  }

  /// Returns the error for a file that is or would be larger than its reader supports.
  public static func tooLarge(_ path: ByteString, to action: Operation = .create) -> SystemError {
    SystemError(action, path, number: EFBIG)
  }

  /// Returns the error for a file of this program that another user may have created.
  public static func untrusted(_ path: ByteString) -> SystemError {
    SystemError(.trust, path, number: EPERM)
  }

  /// Returns the error for a program directory on a device that the device's owner cannot access.
  public static func foreignOwner(_ path: ByteString) -> SystemError {
    SystemError(.trust, path, number: EACCES)
  }

  /// The stable code of the error.
  public var code: ErrorCode {
    if operation == .trust { return .notTrusted }
    return switch number {
    case ENOENT, ENOTDIR: .notFound
    case EACCES, EPERM: .permissionDenied
    case ENOSPC: .noSpace
    case EDQUOT: .quotaExceeded
    case EROFS: .readOnly
    case EMFILE, ENFILE: .tooManyOpenFiles
    case EIO, EUCLEAN, EBADMSG: .dataLost
    case ESTALE: .replacedMeanwhile
    case EFBIG: .tooLarge
    default: .systemError
    }
  }

  private var isForeignOwner: Bool { operation == .trust && number == EACCES }

  private var isDistrust: Bool { operation == .trust && number == EPERM }

  /// Whether the path no longer leads to the same file: it was removed, renamed or replaced.
  public var isGoneOrReplaced: Bool { isMissing || number == ESTALE || number == ELOOP }

  /// Whether this user lacks permission.
  public var isRefused: Bool { number == EACCES || number == EPERM }

  /// Whether no process reads the output: the other end of the pipe is closed.
  public var isBrokenPipe: Bool { operation == .write && number == EPIPE }

  /// Whether the name already exists.
  public var isExisting: Bool { number == EEXIST || number == ENOTEMPTY }

  /// Whether the file system does not support the operation.
  public var isUnsupported: Bool { Self.isUnsupported(number) }

  static func isUnsupported(_ number: Int32) -> Bool {
    number == EOPNOTSUPP || number == ENOSYS || number == ENOTTY || number == EINVAL
  }

  /// Whether an entry cannot be renamed to another directory. An overlay refuses this for a
  /// directory of its lower layer, unless it may redirect directories.
  private var isUnmovable: Bool { operation == .rename && isOnAnotherVolume }

  /// Whether the two files are on different volumes.
  public var isOnAnotherVolume: Bool { number == EXDEV }

  /// Whether the volume provides no locks: its lock service cannot be reached (NFS).
  public var hasNoLocks: Bool { number == ENOLCK }

  /// Whether another process holds the lock.
  public var isBusy: Bool { number == EWOULDBLOCK && !isProcessLimit }

  /// Whether the system has no room for another thread or program.
  private var isProcessLimit: Bool {
    (operation == .startThread || operation == .run) && number == EAGAIN
  }

  /// Whether the path names another file than expected.
  public var isStale: Bool { number == ESTALE }

  /// Whether a pipe, a socket or a device was found where only a file is read.
  public var isNoFile: Bool { number == ESPIPE }

  /// Whether a symbolic link was found where none is followed.
  public var isLink: Bool { number == ELOOP }

  /// Whether the file system cannot have such a name, so that no entry of that name exists.
  public var isNameTooLong: Bool { number == ENAMETOOLONG }

  /// Whether fsync(2) or syncfs(2) failed because the file system cannot sync that kind of file, or
  /// volumes.
  var isSyncUnsupported: Bool {
    operation == .sync
      && (number == EINVAL || number == ENOTSUP || number == EOPNOTSUPP || number == ENOSYS)
  }

  private static func reason(of number: Int32) -> String {
    switch number {
    case ENOENT: "no such file or directory"
    case EACCES: "permission denied"
    case EPERM: "not permitted"
    case EEXIST: "it already exists"
    case ENOTDIR: "not a directory"
    case EISDIR: "it is a directory"
    case ESPIPE: "it is a pipe, a socket or a device, not a file"
    case ENOTEMPTY: "the directory is not empty"
    case ENOSPC: "no space or inodes left on the volume"
    case EDQUOT: "the disk quota is exceeded"
    case EROFS: "the file system is read-only"
    case EIO: "input/output error"
    case ELOOP: "it is a symbolic link, which is not followed"
    case EMFILE: "too many files are open in this program"
    case ENFILE: "too many files are open on this system"
    case EBUSY: "it is in use, or another volume is mounted there"
    case ENAMETOOLONG: "the name is too long"
    case EXDEV: "it is on another file system"
    case EWOULDBLOCK: "another process holds its lock"
    case ESTALE: "it was replaced in the meantime"
    case EFBIG: "it is too large"
    case EINVAL: "the name or value is not valid here"
    case EOPNOTSUPP: "the file system does not support it"
    default: unsafe String(cString: strerror(number))
    }
  }
}
