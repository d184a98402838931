import Glibc
import SystemIO
import TestSupport
import Testing

struct SystemErrorTests {
  @Test func theMessageNamesOperationPathAndReason() throws {
    let error = SystemError(.open, "/a/b", number: EACCES)
    #expect(error.description == "cannot open '/a/b': permission denied")
    #expect(error.reason == "permission denied")
    #expect(error.hint == "check the owner and the mode, or run as the user who owns it")
    #expect(
      "\(SystemError(.readAttributes, "a\nb", number: ENOENT))"
        == "cannot read the attributes of 'a\\nb': no such file or directory")
  }

  /// The path is on a device that may belong to another user, and the command runs as root.
  @Test(
    arguments: [
      ("/srv/phone/.sandboxctl", ": sudo chown -R --reference=/srv/phone /srv/phone/.sandboxctl"),
      (
        "/srv/a'; b/.sandboxctl",
        #": sudo chown -R --reference='/srv/a'\''; b' '/srv/a'\''; b/.sandboxctl'"#
      ),
      ("/srv/a\u{1b}[2K/.sandboxctl", ""),
    ] as [(ByteString, String)]
  ) func theCommandOfAHintIsQuoted(path: ByteString, command: String) {
    #expect(SystemError.foreignOwner(path).hint == "change its owner to the device's" + command)
  }

  @Test(arguments: SystemError.Operation.allCases)
  func everyOperationReadsAsAVerb(operation: SystemError.Operation) {
    let text = SystemError(operation, "x", number: EIO).description
    #expect(text == "cannot \(operation.rawValue) 'x': input/output error")
    #expect(operation.rawValue.allSatisfy { $0 == " " || ($0.isLowercase && $0.isASCII) })
  }

  @Test(arguments: [
    ENOENT, EACCES, EPERM, EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, ENOSPC, EDQUOT, EROFS, EIO, ELOOP,
    EMFILE, ENFILE, ENAMETOOLONG, EXDEV, EWOULDBLOCK, EINVAL, EOPNOTSUPP, EBUSY, ESTALE, EFBIG,
  ])
  func everyReasonIsInPlainWords(number: Int32) {
    let reason = SystemError(.read, "x", number: number).reason
    #expect(!reason.isEmpty)
    #expect(!reason.hasSuffix("."))
    #expect(!reason.contains("Unknown"))
  }

  /// An overlay refuses to rename some directories, with the error number for a different file
  /// system.
  @Test func refusedRenamesNameOverlays() {
    #expect(SystemError(.rename, "x", number: EXDEV).reason.contains("overlay"))
    #expect(!SystemError(.create, "x", number: EXDEV).reason.contains("overlay"))
  }

  @Test(arguments: [
    (ENOSPC, "free space or inodes on that volume, or choose another volume"),
    (EDQUOT, "free space within the quota, or request a larger one"),
    (EROFS, "mount it read-write, or choose another location"),
    (EMFILE, "raise the limit of open files (ulimit -n)"),
    (EFBIG, "check the limit of file sizes (ulimit -f), and that of the file system"),
    (EIO, "the device may be failing: check the system log"),
    (ENOENT, "check the spelling of the path"),
  ])
  func someErrorsHaveAHint(number: Int32, hint: String) {
    #expect(SystemError(.write, "x", number: number).hint == hint)
  }

  /// The system uses EAGAIN both for a held lock and for the limit of processes and threads.
  @Test(arguments: [SystemError.Operation.startThread, .run])
  func failureToStartAThreadOrProgramIsNotALock(operation: SystemError.Operation) {
    let error = SystemError(operation, "x", number: EAGAIN)
    #expect(error.description.hasSuffix("processes and threads, or of memory, is reached"))
    #expect(error.hint?.contains("ulimit -u") == true && !error.isBusy)
    #expect(SystemError(.lock, "x", number: EAGAIN).isBusy)
  }

  @Test func someErrorsHaveNoHint() {
    #expect(SystemError(.write, "x", number: EXDEV).hint == nil)
    // This limit is not one of the system.
    #expect(SystemError.tooLarge("x").hint == nil)
  }

  @Test func errorsAreClassified() {
    func error(_ number: Int32) -> SystemError { SystemError(.open, "x", number: number) }
    #expect(error(ENOENT).isMissing && error(ENOTDIR).isMissing && !error(EACCES).isMissing)
    #expect(error(EEXIST).isExisting && error(ENOTEMPTY).isExisting && !error(ENOENT).isExisting)
    #expect(error(EOPNOTSUPP).isUnsupported && error(ENOSYS).isUnsupported)
    #expect(!error(EACCES).isUnsupported)
    #expect(error(EWOULDBLOCK).isBusy && !error(EACCES).isBusy)
    #expect(error(ELOOP).isLink && !error(ENOTDIR).isLink)
    #expect(error(ENOSPC).endsEverything && error(EROFS).endsEverything)
    #expect(error(EDQUOT).endsEverything && !error(EIO).endsEverything)
    #expect(!error(EACCES).endsEverything)
    #expect(
      SystemError.replaced("x").description
        == "cannot read 'x': it was replaced in the meantime")
  }

  @Test func errorsContainTheKnownPartOfThePath() throws {
    let temporary = try TemporaryDirectory("paths")
    let directory = try temporary.directory.makeDirectory("a")
    let error = failure { _ = try directory.file("b") }
    #expect(error?.path.isWithin(ByteString("sandboxctl")) == false)
    #expect(error?.path.components.suffix(2) == ["a", "b"])
    let whole = failure { _ = try Directory.open(path: temporary.path("none")) }
    #expect(whole?.path == temporary.path("none"))
  }
}
