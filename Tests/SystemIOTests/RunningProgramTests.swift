import SystemIO
import Testing

/// Programs whose output is read while they are running.
struct RunningProgramTests {
  /// Reads all output of a program.
  private static func output(of program: RunningProgram) throws -> [UInt8] {
    var (bytes, buffer): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 1000))
    while let count = try program.read(into: &buffer, isStopping: { false }), count > 0 {
      bytes += buffer[..<count]
    }
    return bytes
  }

  private static func shell(_ script: String) throws -> RunningProgram {
    try RunningProgram(["sh", "-c", ByteString(script)])
  }

  @Test func outputErrorsAndExitCodeAreSeparate() throws {
    let program = try Self.shell("echo out; echo one >&2; echo two >&2; exit 7")
    #expect(try Self.output(of: program) == Array("out\n".utf8))
    #expect(try program.waitForEnd { false } == 7 && program.code == 7)
    #expect(program.lastErrorLines(3) == ["one", "two"] && program.lastErrorLines(1) == ["two"])
  }

  /// The program has no input and no terminal, and runs in its own session.
  @Test func itCannotPromptTheUser() throws {
    let program = try Self.shell("cat; echo end; (exec < /dev/tty) 2> /dev/null || echo none")
    #expect(try Self.output(of: program) == Array("end\nnone\n".utf8))
  }

  /// The program is not blocked by unread output or any amount of error messages, and these do not
  /// fill memory.
  @Test func muchOutputDoesNotBlock() throws {
    let program = try Self.shell(
      "head -c 3000000 /dev/zero; yes error | head -n 500000 >&2; echo last >&2")
    #expect(try Self.output(of: program).count == 3_000_000)
    #expect(try program.waitForEnd { false } == 0)
    #expect(program.lastErrorLines(2) == ["error", "last"])
    let unread = try Self.shell("head -c 3000000 /dev/zero; exit 5")
    #expect(try unread.waitForEnd { false } == 5)
  }

  @Test func variablesAreReplaced() throws {
    let program = try RunningProgram(
      ["sh", "-c", "echo $HOME $NEW_ONE; env | grep -c ^HOME="],
      environment: [("HOME", "/elsewhere"), ("NEW_ONE", "x")])
    #expect(try Self.output(of: program) == Array("/elsewhere x\n1\n".utf8))
  }

  @Test func aSignalIsReportedAsExitCode() throws {
    #expect(try Self.shell("kill -KILL $$").waitForEnd { false } == 128 + 9)
  }

  @Test func aMissingProgramIsAnError() throws {
    let error = #expect(throws: SystemError.self) { try RunningProgram(["no-such-program"]) }
    #expect(error?.isMissing == true && error?.operation == .run)
    #expect(throws: SystemError.self) { try RunningProgram([]) }
    #expect(throws: SystemError.self) { try RunningProgram(["/etc/passwd"]) }
  }

  @Test func aWaitingReadCanBeStopped() throws {
    let program = try Self.shell("sleep 600")
    var (buffer, calls) = ([UInt8](repeating: 0, count: 10), 0)
    let count = try program.read(into: &buffer) {
      calls += 1
      return calls > 2
    }
    #expect(count == nil && program.code == nil)
    #expect(try program.waitForEnd { true } == nil)
  }

  /// SIGINT ends the program cleanly, including its children.
  ///
  /// The sleeps are short, because a shell runs a trap only after its child has ended, and a child
  /// that is started just after the signal does not receive it.
  @Test func itIsStoppedWithItsChildren() throws {
    let program = try Self.shell(
      "trap 'echo cleaned >&2; exit 3' INT; echo; while :; do sleep 0.1; done")
    var buffer = [UInt8](repeating: 0, count: 10)
    #expect(try program.read(into: &buffer) { false } == 1)
    program.end()
    #expect(program.code == 3 && program.lastErrorLines(1) == ["cleaned"])
    program.end()
    #expect(program.code == 3)
  }

  /// A process left behind by a program keeps the streams open, but is not waited for.
  @Test func aProcessLeftBehindIsNotWaitedFor() throws {
    let program = try Self.shell("sleep 30 & echo out; echo error >&2; exit 4")
    #expect(try Self.output(of: program) == Array("out\n".utf8))
    #expect(try program.waitForEnd { false } == 4)
    #expect(program.lastErrorLines(1) == ["error"])
  }
}
