import Foundation
import SystemIO
import TestSupport
import Testing

struct RangeLockTests {
  let temporary: TemporaryDirectory
  init() throws {
    temporary = try TemporaryDirectory("ranges")
    try temporary.write("content", at: "f")
  }

  /// Starts a program that holds a POSIX lock on a range of the file until its input is closed.
  private func locker(_ kind: String, from start: Int, count: Int) throws -> (Process, Pipe) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    let program = """
      import fcntl, sys
      file = open(sys.argv[1], "r+")
      fcntl.lockf(file, fcntl.\(kind) | fcntl.LOCK_NB, \(count), \(start))
      print("locked", flush=True)
      sys.stdin.read()
      """
    process.arguments = ["python3", "-c", program, temporary.string + "/f"]
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    #expect(output.fileHandleForReading.readData(ofLength: 7) == Data("locked\n".utf8))
    return (process, input)
  }

  private func end(_ locker: (process: Process, input: Pipe)) throws {
    try locker.input.fileHandleForWriting.close()
    locker.process.waitUntilExit()
  }

  @Test func anExclusiveLockOfAnotherProcessBlocksSharedOnes() throws {
    let file = try temporary.directory.file("f")
    let other = try locker("LOCK_EX", from: 100, count: 10)
    for (range, isFree) in [
      (90..<100, true), (99..<101, false), (109..<110, false), (110..<111, true), (0..<500, false),
    ] as [(Range<UInt64>, Bool)] {
      #expect(try file.isLockedElsewhere(range) == !isFree)
      #expect(try file.isLockedForWritingElsewhere(range) == !isFree)
      #expect(try file.lockShared(range) == isFree)
      try file.unlock(range)
    }
    try end(other)
    #expect(try file.lockShared(0..<500))
  }

  @Test func sharedLocksAreCompatible() throws {
    let file = try temporary.directory.file("f")
    let other = try locker("LOCK_SH", from: 100, count: 10)
    #expect(try file.isLockedElsewhere(100..<101))
    #expect(try file.isLockedForWritingElsewhere(100..<101) == false)
    #expect(try file.lockShared(100..<101))
    try end(other)
    // The process's own lock does not count.
    #expect(try file.isLockedElsewhere(100..<101) == false)
  }

  @Test func aLockBelongsToTheOpenFile() throws {
    let range: Range<UInt64> = 0x4000_0000..<0x4000_0001
    let watcher = try temporary.directory.file("f")
    do {
      let holder = try temporary.directory.file("f")
      #expect(try holder.lockShared(range))
      // Unlike with process locks, closing another descriptor does not release the lock.
      try temporary.directory.file("f").close()
      #expect(try watcher.isLockedElsewhere(range))
      try holder.unlock(range)
      #expect(try watcher.isLockedElsewhere(range) == false)
      #expect(try holder.lockShared(range))
    }
    // A program that another test is just starting has a copy of the descriptor until it begins.
    let end = Host.monotonicSeconds() + 600
    while try watcher.isLockedElsewhere(range), Host.monotonicSeconds() < end { usleep(1000) }
    #expect(try watcher.isLockedElsewhere(range) == false)
  }

  @Test func unlockAllReleasesAllLocksOfAFile() throws {
    let file = try temporary.directory.file("f")
    let watcher = try temporary.directory.file("f")
    let ranges: [Range<UInt64>] = [0..<1, 5..<6, 0x4000_0000..<0x4000_0200]
    for range in ranges { #expect(try file.lockShared(range)) }
    file.unlockAll()
    for range in ranges { #expect(try watcher.isLockedElsewhere(range) == false) }
    withExtendedLifetime(file.name) {}
  }

  @Test func locksAreSeenByOtherProcesses() throws {
    let file = try temporary.directory.file("f")
    #expect(try file.lockShared(5..<6))
    let program = """
      import fcntl, sys
      file = open(sys.argv[1], "r+")
      fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 5)
      try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 5)
      except BlockingIOError: sys.exit(9)
      """
    let path = temporary.string + "/f"
    #expect(try Program.run("python3", ["-c", program, path]).code == 9)
    try file.unlock(5..<6)
    #expect(try Program.run("python3", ["-c", program, path]).code == 0)
  }

  @Test func errorsNameOperationAndFile() throws {
    let file = try temporary.directory.file("f")
    for number in [ENOLCK, EINVAL] {
      let plan = Faults.Plan(failing: [.lock], at: 1, number: number, failsRepeatedly: true)
      Faults.inject(plan) {
        let expected = SystemError(.lock, temporary.path("f"), number: number)
        #expect(failure { _ = try file.lockShared(0..<1) } == expected)
        #expect(failure { try file.unlock(0..<1) } == expected)
        #expect(failure { _ = try file.isLockedElsewhere(0..<1) } == expected)
      }
    }
    // Errors that report a lock held by another program are not failures.
    for number in [EAGAIN, EACCES] {
      let plan = Faults.Plan(failing: [.lock], at: 1, number: number)
      #expect(
        try Faults.inject(plan) { () throws(SystemError) in try file.lockShared(0..<1) } == false)
    }
  }
}
