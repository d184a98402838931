import Foundation
import SystemIO
import TestSupport
import Testing

/// `purge --watch`, and the end of a purge after a signal.
struct PurgeWatchTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine(inMemory: true)
    // Every volume is short of space.
    try cli.directory.write(
      """
      overlay: all
      schema: 1
      pressure:
        - {level: critical, when-free-below: {percent: 100}, reclaim-to: {percent: 100},
           orders: [0, 10, 20, 30], min-age: 0d}

      """, at: "short.yaml")
  }

  private static let data =
    "device/Containers/Data/Application/0A0A0A0A-0000-4000-8000-000000000001"

  private func put(_ path: String, _ bytes: Int = 5000) throws {
    try cli.directory.write(
      [UInt8](repeating: 1, count: bytes), at: ByteString(Self.data + "/" + path))
  }

  private func isThere(_ path: String) throws -> Bool {
    try cli.isThere(ByteString(Self.data + "/" + path))
  }

  private static let purge = "purge --root device --layout coresimulator --policy short.yaml --yes"

  /// Starts a watch, whose process ID is `$P`, and runs a script. In the script,
  /// `await FILE TEXT COUNT` waits until COUNT lines of the watch's `out` or `err` contain TEXT,
  /// and `look FILE TEXT COUNT` also makes the watch check the volumes while it waits. At the end,
  /// SIGTERM ends the watch. Returns the outcome.
  private func watched(_ script: String, _ arguments: String = "") throws -> Program.Outcome {
    // The files exist before the watch starts, which opens them later than the script reads them.
    let text = """
      : > out; : > err
      env --default-signal "$0" \(Self.purge) --watch \(arguments) > out 2> err & P=$!
      await() {
        for i in $(seq 6000); do
          if [ "$(grep -c -e "$2" "$1")" -ge "$3" ]; then return; fi
          if [ -n "$4" ]; then kill -USR1 $P; fi
          sleep 0.1
        done
        echo "no '$2' in $1: $(cat out err)" >&2
      }
      look() { await "$1" "$2" "$3" now; }
      \(script)
      kill -TERM $P
      wait $P
      """
    return try cli.run([], under: ["bash", "-c", text])
  }

  @Test func watchSurvivesADisappearingDevice() throws {
    try put("Documents/thesis")
    try put("Library/Caches/one")
    let documents = try TreeRecord.all(in: cli.directory, ByteString(Self.data + "/Documents"))
    let outcome = try watched(
      """
      await out 'freed [1-9]' 1
      mv device parked
      look err 'sandboxctl: warning: ' 1
      mkdir -p parked/\(Self.data.dropFirst(7))/Library/Caches
      echo again > parked/\(Self.data.dropFirst(7))/Library/Caches/two
      mv parked device
      look out 'freed [1-9]' 2
      """)
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    #expect(try !isThere("Library/Caches/one") && !isThere("Library/Caches/two"))
    #expect(
      try TreeRecord.all(in: cli.directory, ByteString(Self.data + "/Documents")) == documents)
    let lines = try cli.text("out").split(separator: "\n")
    let form = /20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ \S+: freed .* in \d+ files?, .* free, .* missing/
    #expect(lines.allSatisfy { $0.wholeMatch(of: form) != nil }, "\(lines)")
    #expect(try !cli.text("err").contains("error"))
  }

  @Test func deviceMayAppearLater() throws {
    let outcome = try watched(
      """
      await err 'cannot find a device' 1
      mkdir -p \(Self.data)/Library/Caches
      echo new > \(Self.data)/Library/Caches/new
      look out '"event":"report"' 1
      """, "--json")
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    #expect(try !isThere("Library/Caches/new"))
    let lines = try cli.text("out").split(separator: "\n")
    let first = try CommandLine.object(try #require(lines.first))
    #expect(try #require(first["freed"] as? Int) >= 4096)
    #expect(first["time"] is String)
    var fixture = try SchemaFixture(isEmpty: true)
    fixture.add("purge", "purge --watch --json", try cli.text("out"))
    #expect(try fixture.validate() == [])
  }

  /// If nothing more can be freed, the watch reports this once.
  @Test func emptyResultIsReportedOnce() throws {
    try put("Documents/a")
    let outcome = try watched(
      """
      await out 'freed 0 B' 1
      for i in 1 2 3; do kill -USR1 $P; sleep 0.2; done
      echo x > \(Self.data)/Documents/cache; mkdir -p \(Self.data)/tmp
      echo x > \(Self.data)/tmp/x
      look out 'freed [1-9]' 1
      """)
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    let lines = try cli.text("out").split(separator: "\n")
    let gained = try #require(lines.firstIndex { $0.contains(/freed [1-9]/) })
    #expect(gained == 1, "\(lines)")
  }

  @Test func enoughSpaceMeansNoScanAndNoOutput() throws {
    try put("Library/Caches/one")
    let outcome = try watched(
      """
      for i in $(seq 6000); do
        if grep -q . out; then break; fi
        if [ -r /proc/$P/status ] && grep -q 'SigCgt:.*[4-7cdef]...$' /proc/$P/status; then break; fi
        sleep 0.1
      done
      """, "--until-free 1")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try cli.text("out").isEmpty && cli.text("err").isEmpty)
    #expect(try isThere("Library/Caches/one"))
  }

  @Test(arguments: [
    ("--watch --query", "cannot be used with '--query'"), ("--watch --dry-run", "or '--dry-run'"),
    ("--watch --free 1G", "cannot be used with '--free'"),
    ("--watch --level low", "with '--level' alone"),
    ("--watch --interval 10s", "30s or more"),
    ("--interval 60s", "'--interval' requires '--watch'"),
    ("--watch --policy no-such-policy", "no-such-policy"),
  ])
  func invalidWatchOptionsAreRefused(_ words: String, _ says: String) throws {
    try put("Library/Caches/one")
    let outcome = try cli.run("\(Self.purge) \(words)")
    #expect(outcome.code == 2 || outcome.code == 1 && words.contains("policy"))
    #expect(outcome.errors.contains(says), "\(outcome.errors)")
    #expect(try isThere("Library/Caches/one"))
  }

  @Test func watchNeverAsksForConfirmation() throws {
    try put("Library/Caches/one")
    let words = Self.purge.replacing(" --yes", with: "") + " --watch"
    let outcome = try cli.run(words)
    #expect(outcome.code == 2 && outcome.errors.contains("'--watch' requires '--yes'"))
    #expect(try isThere("Library/Caches/one"))
  }

  // MARK: - Signals

  /// After a signal in the middle of the first unit, this unit is deleted and the others stay
  /// complete.
  @Test(
    .enabled(if: Strace.isPermitted),
    arguments: [("INT", "", 130), ("TERM", "", 130), ("INT", "--watch", 0), ("TERM", "--watch", 0)])
  func signalEndsThePurgeBetweenUnits(_ signal: String, _ words: String, _ code: Int32) throws {
    let suffixes = ["", "-wal", "-shm"]
    for number in 0..<6 {
      for suffix in suffixes { try put("Library/Caches/\(number).db\(suffix)") }
    }
    try put("Documents/thesis")
    let delay = "unlinkat:delay_enter=300000"
    let text = """
      strace -f -o trace -e trace=unlinkat -e inject=\(delay) \
        env --default-signal "$0" \(Self.purge) \(words) > out 2> err & S=$!
      for i in $(seq 60000); do
        if [ ! -e \(Self.data)/Library/Caches/0.db ]; then break; fi
        sleep 0.01
      done
      kill -\(signal) $(pgrep -P $S)
      wait $S
      """
    let outcome = try cli.run([], under: ["bash", "-c", text])
    let said = try cli.text("err")
    #expect(outcome.code == code, "\(said)")
    var whole = 0
    for number in 0..<6 {
      let left = try suffixes.filter { try isThere("Library/Caches/\(number).db\($0)") }
      #expect(left.isEmpty || left.count == 3, "\(number): \(left)")
      whole += left.isEmpty ? 0 : 1
    }
    #expect((1...5).contains(whole))
    #expect(try !isThere("Library/Caches/0.db-wal") && isThere("Documents/thesis"))
    #expect(try cli.text("out").contains("freed"), "deletions are reported")
    let units = whole == 5 ? "1 unit" : "\(6 - whole) units"
    let interruption = "the purge was interrupted: \(units) deleted, all others are unchanged"
    #expect(said.contains(interruption) == (code == 130), "\(interruption), but: \(said)")
  }
}

extension CommandLine {
  /// A text file in the directory.
  fileprivate func text(_ name: ByteString) throws -> String {
    String(decoding: try directory.read(name), as: UTF8.self)
  }
}
