import ArchiveStore
import Codecs
import SandboxModel
import SystemIO
import Testing

@testable import SandboxCommands

/// Errors as they are reported: exit status, code, parts and cause.
struct FailureTests {
  private static let denied = SystemError(.open, "/srv/a", number: 13)

  @Test func storeErrorKeepsItsPartsAndCause() {
    let error = StoreError(
      .system, "create the repository", subject: "/srv/a", reason: "permission denied",
      hint: "ask", cause: Self.denied)
    let failure = Failure(error)
    #expect(failure.status == .failed && failure.code == .permissionDenied)
    #expect(failure.message == "cannot create the repository '/srv/a': permission denied")
    #expect(
      failure.parts
        == ErrorParts(
          action: "create the repository", subject: "/srv/a", reason: "permission denied"))
    #expect(
      failure.json.compact == """
        {"error":"cannot create the repository '/srv/a': permission denied","exit_status":1,\
        "code":"permission_denied","action":"create the repository","subject":"/srv/a",\
        "reason":"permission denied","hint":"ask","cause":{"code":"permission_denied",\
        "action":"open","subject":"/srv/a","reason":"permission denied"}}
        """)
  }

  /// A skipped object counts as damaged only if its bytes are damaged.
  @Test func skippedObjectsDecideTheStatus() {
    func error(_ code: StoreError.Code, _ cause: SystemError? = nil) -> StoreError {
      StoreError(code, "read", subject: "a", reason: "r", cause: cause)
    }
    #expect(ExitStatus(without: []) == .done)
    #expect(ExitStatus(without: [error(.system), error(.system, Self.denied)]) == .doneInPart)
    #expect(ExitStatus(without: [error(.system), error(.damaged)]) == .damaged)
    #expect(ExitStatus(without: [error(.unsupported)]) == .damaged)
  }

  @Test(arguments: [
    (StoreError.Code.noRepository, ErrorCode.noRepository, 10), (.notEmpty, .notEmpty, 1),
    (.unsupported, .unsupportedFormat, 1), (.unknownFeature, .unknownFeature, 1),
    (.missing, .objectMissing, 13), (.damaged, .damaged, 13), (.leaseLost, .leaseLost, 1),
    (.busy, .repositoryLocked, 11), (.noSnapshot, .snapshotNotFound, 1),
    (.ambiguousSnapshot, .snapshotAmbiguous, 1), (.untrusted, .snapshotUntrusted, 13),
    (.invalid, .invalidInput, 1),
    (.interrupted, .interrupted, 130), (.notDurable, .notDurable, 1), (.system, .systemError, 1),
  ])
  func storeErrorHasItsCode(_ kind: StoreError.Code, _ code: ErrorCode, _ status: Int) {
    let failure = Failure(StoreError(kind, "use", subject: "x", reason: "y"))
    #expect(failure.code == code && Int(failure.status.rawValue) == status)
    #expect(failure.cause == nil && failure.json["cause"] == nil && failure.json["hint"] == nil)
  }

  @Test(arguments: [
    (ModelError.Code.propertyList, ErrorCode.invalidPropertyList), (.limit, .limitExceeded),
    (.logicalPath, .invalidPath), (.containerName, .invalidContainerName), (.noDevice, .noDevice),
    (.ambiguousDevice, .ambiguousDevice), (.noApp, .noApp), (.ambiguousApp, .ambiguousApp),
    (.package, .invalidPackage), (.unsafePackage, .unsafePackage),
  ])
  func modelErrorHasItsCode(_ kind: ModelError.Code, _ code: ErrorCode) {
    let failure = Failure(ModelError(kind, "use the path", on: "x", reason: "y", hint: "z"))
    #expect(failure.code == code && failure.status == .failed && failure.hint == "z")
    #expect(
      failure.parts == ErrorParts(action: "use the path", subject: "x", reason: "y"))
  }

  @Test func subjectThatIsNotUTF8HasItsBytes() {
    let json = Failure(SystemError(.open, ByteString([0x61, 0xFF]), number: 2)).json
    #expect(json["code"]?.string == "not_found")
    #expect(json["subject_b64"]?.string == "Yf8=")
    #expect(json["subject"]?.string == ByteString([0x61, 0xFF]).description)
    // A store error has text; the bytes are in its cause.
    let path = ByteString([0x61, 0xFF])
    let error = StoreError(
      .system, "open", subject: path.description, reason: "y",
      cause: SystemError(.open, path, number: 2))
    #expect(Failure(error).json["subject_b64"]?.string == "Yf8=")
  }

  @Test func operationErrorHasTheCodeOfItsKindUnlessItHasItsOwn() {
    for (kind, code, status) in [
      (OperationError.Kind.usage, ErrorCode.invalidArguments, Int32(2)),
      (.notFound, .notFound, 1), (.busy, .repositoryLocked, 11),
      (.interrupted, .interrupted, 130), (.failed, .systemError, 1),
    ] {
      let failure = Failure(OperationError(kind, "cannot"))
      #expect(failure.code == code && failure.status.rawValue == status)
      #expect(failure.json["action"] == nil && failure.json["subject"] == nil)
    }
    #expect(Failure(OperationError(.failed, code: .declined, "cannot")).code == .declined)
    let failure = Failure(OperationError(Self.denied))
    #expect(failure.code == .permissionDenied && failure.parts.subject == "/srv/a")
  }

  @Test func operationErrorKeepsItsParts() {
    let path = ByteString([0x2F, 0xFF])
    let error = OperationError(
      .usage, code: .targetExists, "restore to", subject: path, reason: "it exists", hint: "h")
    let failure = Failure(error)
    #expect(failure.message == "cannot restore to '\(path)': it exists")
    #expect(
      failure.parts == ErrorParts(action: "restore to", subject: path, reason: "it exists"))
    #expect(failure.json["subject_b64"]?.string == "L/8=")
    let more = Failure(error.adding(remark: "nothing was restored"))
    #expect(more.message == failure.message + "; nothing was restored")
    #expect(more.parts.reason == "it exists; nothing was restored" && more.code == .targetExists)
    let none = Failure(OperationError(.failed, "use cron", reason: "it is missing"))
    #expect(none.message == "cannot use cron: it is missing")
    #expect(none.parts == ErrorParts(action: "use cron", reason: "it is missing"))
  }

  @Test func missingItemMayBeInASkippedDamagedObject() {
    let error = OperationError(.notFound, code: .pathNotInSnapshot, "cannot find 'x'")
    let (plain, skipped) = (
      Failure(error, passingOverDamage: false), Failure(error, passingOverDamage: true)
    )
    #expect(plain.status == .failed && plain.code == .pathNotInSnapshot)
    #expect(skipped.status == .damaged && skipped.code == .damaged)
    #expect(skipped.message == plain.message)
  }

  @Test func usageErrorOfTheParserHasACode() {
    for (message, code) in [
      ("The value 'x' is invalid for '--jobs <number>'", ErrorCode.invalidValue),
      ("Unknown option '--x'", .invalidArguments),
      ("'--tar' and '--merge-log' cannot be used together.", .optionsConflict),
      ("Missing expected argument '<snap>'", .invalidArguments),
    ] {
      let failure = Failure(UsageError(parser: message, ""))
      #expect(failure.code == code && failure.status == .wrongUsage, "\(message)")
    }
  }

  @Test func configurationErrorNamesItsLine() {
    let failure = Failure(ConfigurationError("no option", at: "/c.yaml:1:2", hint: "h"))
    #expect(failure.message == "cannot use the configuration: /c.yaml:1:2: no option")
    #expect(failure.code == .invalidConfiguration && failure.status == .failed)
    #expect(failure.parts.subject == "/c.yaml:1:2" && failure.parts.reason == "no option")
    #expect(failure.set(in: "/d:3:4").message.hasSuffix("no option (set in /d:3:4)"))
  }

  @Test(arguments: [
    (CodecError.Kind.limit, CodecError.Format.json, ErrorCode.limitExceeded),
    (.malformed, .json, .invalidInput), (.malformed, .propertyList, .invalidPropertyList),
    (.unsupported, .yaml, .unsupportedFormat), (.library, .zstd, .systemError),
  ])
  func codecErrorHasItsCode(
    _ kind: CodecError.Kind, _ format: CodecError.Format, _ code: ErrorCode
  ) {
    let failure = Failure(CodecError(kind, in: format, reason: "y"))
    #expect(failure.code == code && failure.status == .failed)
  }

  @Test func unknownErrorIsInternal() {
    struct Other: Error {}
    #expect(Failure(Other()).code == .internalError)
  }
}
