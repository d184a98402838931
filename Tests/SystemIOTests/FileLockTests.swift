import Foundation
import SystemIO
import TestSupport
import Testing

@Suite struct FileLockTests {
  let temporary: TemporaryFolder
  init() throws { temporary = try TemporaryFolder("lock") }

  @Test func theSecondTakerIsBusy() throws {
    do {
      let lock = try FileLock("l", in: temporary.folder)
      let error = failure { _ = try FileLock("l", in: temporary.folder) }
      #expect(error?.isBusy == true)
      #expect(error?.operation == .lock)
      #expect(error?.path == temporary.path("l"))
      #expect(error?.reason == "another program holds its lock")
      let other = try FileLock("other", in: temporary.folder)
      _ = consume lock
      _ = consume other
    }
    // Gone with the value; the file stays.
    #expect(try temporary.folder.names() == ["l", "other"])
    _ = try FileLock("l", in: temporary.folder)
  }

  @Test func severalMayShareAndNoneMayExcludeThen() throws {
    let first = try FileLock("l", in: temporary.folder, exclusive: false)
    let second = try FileLock("l", in: temporary.folder, exclusive: false)
    #expect(failure { _ = try FileLock("l", in: temporary.folder) }?.isBusy == true)
    _ = consume first
    _ = consume second
    let alone = try FileLock("l", in: temporary.folder)
    #expect(
      failure { _ = try FileLock("l", in: temporary.folder, exclusive: false) }?.isBusy == true)
    _ = consume alone
  }

  @Test func anotherProcessIsBusyToo() throws {
    let path = temporary.string + "/l"
    let lock = try FileLock("l", in: temporary.folder)
    #expect(try Program.run("flock", ["-n", "-E", "9", path, "true"]).code == 9)
    _ = consume lock
    #expect(try Program.run("flock", ["-n", "-E", "9", path, "true"]).code == 0)
  }

  @Test func anotherProcessKeepsUsOutUntilItEnds() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", "exec flock \"$0\" sh -c 'echo locked; read end'"]
    process.arguments?.append(temporary.string + "/l")
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    #expect(output.fileHandleForReading.readData(ofLength: 7) == Data("locked\n".utf8))
    #expect(failure { _ = try FileLock("l", in: temporary.folder) }?.isBusy == true)
    try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
    // Waits for the other program, however long it takes to end.
    let lock = try FileLock("l", in: temporary.folder, waiting: true)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    _ = consume lock
  }

  @Test func aLinkInPlaceOfTheLockIsRefused() throws {
    try temporary.write("x", at: "f")
    try temporary.folder.createLink("l", to: "f")
    #expect(failure { _ = try FileLock("l", in: temporary.folder) }?.isLink == true)
  }

  @Test func aFailureLeavesNoLock() throws {
    let plan = Faults.Plan(failing: [.lock], at: 1, number: ENOLCK)
    let error = Faults.inject(plan) { failure { _ = try FileLock("l", in: temporary.folder) } }
    #expect(error?.number == ENOLCK)
    _ = try FileLock("l", in: temporary.folder)
  }
}

/// Asking whether somebody holds a lock, without taking or making one.
@Suite struct HeldLockTests {
  @Test func whoAsksChangesNothing() throws {
    let scratch = try TemporaryFolder("lock")
    #expect(try !FileLock.isHeld("lock", in: scratch.folder))
    #expect(try scratch.folder.names().isEmpty, "a lock that nobody made is not made")
    do {
      let lock = try FileLock("lock", in: scratch.folder)
      #expect(try FileLock.isHeld("lock", in: scratch.folder))
      withExtendedLifetime(lock) {}
    }
    #expect(try !FileLock.isHeld("lock", in: scratch.folder))
    // Who only shares it is in nobody's way.
    let shared = try FileLock("lock", in: scratch.folder, exclusive: false)
    #expect(try !FileLock.isHeld("lock", in: scratch.folder))
    withExtendedLifetime(shared) {}
  }
}
