internal import Glibc

extension SystemError: CustomStringConvertible {
  /// The whole sentence: "cannot open '/a/b': permission denied".
  public var description: String { "cannot \(operation.rawValue) '\(path)': \(reason)" }

  /// Why the call failed, in plain words.
  public var reason: String {
    if isTaken { return "it belongs to another user, as after a run by root" }
    return isDistrust
      ? "it belongs to another user, or others may write to it" : Self.reason(of: number)
  }

  /// What to do about it, where there is something to say.
  public var hint: String? {
    if isTaken {
      return "give it to the device's owner: sudo chown -R --reference='\(path.parent)' '\(path)'"
    }
    if isDistrust {
      return "run as the user who owns it; if it came with a copy of the device, remove it"
    }
    return switch number {
    case EACCES, EPERM: "check the owner and the mode, or run as the user who owns it"
    case ENOSPC: "free space or inodes on that volume, or choose another"
    case EDQUOT: "free space within the quota, or ask for a larger one"
    case EROFS: "mount it for writing, or choose another place"
    case EMFILE, ENFILE: "raise the limit of open files (ulimit -n)"
    case EIO: "the device may be failing: check the system's log"
    case ENOENT: "check the spelling of the path"
    case ESPIPE: "name a regular file, or save what the pipe gives to one first"
    default: nil
    }
  }

  /// Whether there was nothing of that name, in a directory that is there or not.
  public var isAbsent: Bool { number == ENOENT }

  /// Whether the thing was not there (any more).
  public var isMissing: Bool { Self.isMissing(number) }

  static func isMissing(_ number: Int32) -> Bool { number == ENOENT || number == ENOTDIR }

  /// Whether no further call on that volume can succeed either: it is full or cannot be written.
  public var endsEverything: Bool {
    number == ENOSPC || number == EDQUOT || number == EROFS
  }

  /// Whether the device or the file system has lost what was to be read: a bad sector, or what ext4,
  /// XFS and Btrfs say of structures and checksums that are wrong.
  public var isLoss: Bool { number == EIO || number == EUCLEAN || number == EBADMSG }

  /// What stands at that path is not what it was a moment ago.
  public static func replaced(_ path: ByteString) -> SystemError {
    SystemError(.read, path, number: ESTALE)
  }

  /// A file that would have more bytes than whoever reads it takes.
  public static func tooLarge(_ path: ByteString) -> SystemError {
    SystemError(.write, path, number: EFBIG)
  }

  /// Something at that path, of this program by its name, may have been made by somebody else.
  public static func untrusted(_ path: ByteString) -> SystemError {
    SystemError(.trust, path, number: EPERM)
  }

  /// The program's own directory on a device is closed to the device's owner.
  public static func taken(_ path: ByteString) -> SystemError {
    SystemError(.trust, path, number: EACCES)
  }

  private var isTaken: Bool { operation == .trust && number == EACCES }

  private var isDistrust: Bool { operation == .trust && number == EPERM }

  /// Whether the path no longer leads to the file that was found there: it was removed, renamed or
  /// replaced.
  public var isGoneOrReplaced: Bool { isMissing || number == ESTALE || number == ELOOP }

  /// Whether this user may not do it.
  public var isRefused: Bool { number == EACCES || number == EPERM }

  /// Whether something of that name was there already.
  public var isExisting: Bool { number == EEXIST || number == ENOTEMPTY }

  /// Whether the file system does not offer what was asked for.
  public var isUnsupported: Bool { Self.isUnsupported(number) }

  static func isUnsupported(_ number: Int32) -> Bool {
    number == EOPNOTSUPP || number == ENOSYS || number == ENOTTY || number == EINVAL
  }

  /// Whether two things were on different volumes that have to be on one.
  public var isOnAnotherVolume: Bool { number == EXDEV }

  /// Whether another program holds the lock.
  public var isBusy: Bool { number == EWOULDBLOCK }

  /// Whether another thing stood at that path than the one that was meant.
  public var isStale: Bool { number == ESTALE }

  /// Whether a symbolic link stood where none may be followed.
  public var isLink: Bool { number == ELOOP }

  private static func reason(of number: Int32) -> String {
    switch number {
    case ENOENT: "there is no such file or directory"
    case EACCES: "permission denied"
    case EPERM: "not permitted"
    case EEXIST: "it exists already"
    case ENOTDIR: "not a directory"
    case EISDIR: "it is a directory"
    case ESPIPE: "it is a pipe, a socket or a device, not a file"
    case ENOTEMPTY: "the directory is not empty"
    case ENOSPC: "no space or no inode left on the volume"
    case EDQUOT: "the disk quota is used up"
    case EROFS: "the file system is read-only"
    case EIO: "input/output error of the device"
    case ELOOP: "a symbolic link stands there, which is not followed"
    case EMFILE: "too many files are open in this program"
    case ENFILE: "too many files are open on this system"
    case EBUSY: "it is in use, or another volume is mounted there"
    case ENAMETOOLONG: "the name is too long"
    case EXDEV: "it is on another file system"
    case EWOULDBLOCK: "another program holds its lock"
    case ESTALE: "it was replaced by something else meanwhile"
    case EINVAL: "the name or value is not valid there"
    case EOPNOTSUPP: "the file system does not support it"
    default: unsafe String(cString: strerror(number))
    }
  }
}
