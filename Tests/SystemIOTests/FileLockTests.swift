import Foundation
import SystemIO
import TestSupport
import Testing

struct FileLockTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("lock") }

  @Test func aSecondLockIsRefusedAsBusy() throws {
    do {
      let lock = try FileLock("l", in: temporary.directory)
      let error = failure { _ = try FileLock("l", in: temporary.directory) }
      #expect(error?.isBusy == true)
      #expect(error?.operation == .lock)
      #expect(error?.path == temporary.path("l"))
      #expect(error?.reason == "another process holds its lock")
      let other = try FileLock("other", in: temporary.directory)
      _ = consume lock
      _ = consume other
    }
    // The lock ends when its value is released; the file stays.
    #expect(try temporary.directory.names() == ["l", "other"])
    _ = try FileLock("l", in: temporary.directory)
  }

  @Test func aFileWithAnotherNameIsNotWrittenTo() throws {
    try temporary.write("data", at: "file")
    let directory = try Directory.open(path: temporary.path)
    try directory.createHardLink("l", to: "file", in: directory)
    let lock = try FileLock("l", in: directory)
    #expect(failure { _ = try FileLock("file", in: directory) }?.isBusy == true)
    _ = consume lock
    #expect(try temporary.read("file") == Array("data".utf8))
  }

  @Test func sharedLocksBlockAnExclusiveLock() throws {
    let first = try FileLock("l", in: temporary.directory, exclusive: false)
    let second = try FileLock("l", in: temporary.directory, exclusive: false)
    #expect(failure { _ = try FileLock("l", in: temporary.directory) }?.isBusy == true)
    _ = consume first
    _ = consume second
    let alone = try FileLock("l", in: temporary.directory)
    #expect(
      failure { _ = try FileLock("l", in: temporary.directory, exclusive: false) }?.isBusy == true)
    _ = consume alone
  }

  @Test func theLockBlocksOtherProcesses() throws {
    let path = temporary.string + "/l"
    let lock = try FileLock("l", in: temporary.directory)
    #expect(try Program.run("flock", ["-n", "-E", "9", path, "true"]).code == 9)
    _ = consume lock
    #expect(try Program.run("flock", ["-n", "-E", "9", path, "true"]).code == 0)
  }

  @Test func waitingForALockOfAnotherProcessSucceeds() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", "exec flock \"$0\" sh -c 'echo locked; read end'"]
    process.arguments?.append(temporary.string + "/l")
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    #expect(output.fileHandleForReading.readData(ofLength: 7) == Data("locked\n".utf8))
    #expect(failure { _ = try FileLock("l", in: temporary.directory) }?.isBusy == true)
    try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
    // Waits for the other program, however long it runs.
    let lock = try FileLock("l", in: temporary.directory, waiting: true)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    _ = consume lock
  }

  @Test func aLinkInsteadOfALockFileIsRefused() throws {
    try temporary.write("x", at: "f")
    try temporary.directory.createLink("l", to: "f")
    #expect(failure { _ = try FileLock("l", in: temporary.directory) }?.isLink == true)
  }

  /// The threads remove the file before they unlock it. Still, at most one of them holds the lock
  /// at a time.
  @Test func aLockWithARemovedFileIsTakenAgain() throws {
    let (inside, taken, shared) = (Counter(), Counter(), Counter())
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      for _ in 0..<1000 {
        guard let lock = try? FileLock.acquire(removable: "l", in: temporary.directory) else {
          continue
        }
        taken.add()
        if inside.add() > 1 { shared.add() }
        inside.add(-1)
        try? temporary.directory.remove("l")
        _ = consume lock
      }
    }
    #expect(taken.value > 0 && shared.value == 0)
    let lock = try FileLock.acquire(removable: "l", in: temporary.directory)
    let busy = failure { _ = try FileLock.acquire(removable: "l", in: temporary.directory) }
    #expect(busy?.isBusy == true)
    _ = consume lock
  }

  @Test func aFailureLeavesNoLock() throws {
    let plan = Faults.Plan(failing: [.lock], at: 1, number: ENOLCK)
    let error = Faults.inject(plan) { failure { _ = try FileLock("l", in: temporary.directory) } }
    #expect(error?.number == ENOLCK)
    _ = try FileLock("l", in: temporary.directory)
  }
}

/// Checking whether a process holds a lock, without acquiring it or creating its file.
struct HeldLockTests {
  @Test func checkingALockChangesNothing() throws {
    let scratch = try TemporaryDirectory("lock")
    #expect(try !FileLock.isHeld("lock", in: scratch.directory))
    #expect(try scratch.directory.names().isEmpty, "the lock file is not created")
    do {
      let lock = try FileLock("lock", in: scratch.directory)
      #expect(try FileLock.isHeld("lock", in: scratch.directory))
      withExtendedLifetime(lock) {}
    }
    #expect(try !FileLock.isHeld("lock", in: scratch.directory))
    // A shared lock does not count.
    let shared = try FileLock("lock", in: scratch.directory, exclusive: false)
    #expect(try !FileLock.isHeld("lock", in: scratch.directory))
    withExtendedLifetime(shared) {}
  }
}
