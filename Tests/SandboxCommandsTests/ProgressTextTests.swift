import ArchiveStore
import RemoteStorage
import SystemIO
import Testing

@testable import SandboxCommands

/// The text of an operation's progress.
struct ProgressTextTests {
  private static func state(
    files: Int, bytes: UInt64, problems: Int = 0, active: ByteString = "apps/a/data/notes.db"
  ) -> ProgressCounters.State {
    ProgressCounters.State(
      filesToDo: 1200, bytesToDo: 100 << 20, filesDone: files, bytesDone: bytes,
      problems: problems, active: active)
  }

  @Test func fullProgressIsShown() {
    var text = ProgressText()
    #expect(text.line == "scanning")
    text.update(Self.state(files: 0, bytes: 0), at: 10)
    #expect(text.counts == "0 B of 100 MiB, 0 of 1,200 files")
    text.update(Self.state(files: 120, bytes: 10 << 20), at: 12)
    #expect(text.counts == "10.0 MiB of 100 MiB, 120 of 1,200 files, 5.0 MiB/s, 18 s left")
    text.update(Self.state(files: 1, bytes: 10 << 20, problems: 1), at: 12)
    #expect(text.line.hasSuffix(", 1 error: apps/a/data/notes.db"))
  }

  @Test func workWithoutBytesIsMeasuredInFiles() {
    var text = ProgressText()
    text.update(ProgressCounters.State(filesToDo: 20, active: "packs/ab/cd"), at: 0)
    text.update(ProgressCounters.State(filesToDo: 20, filesDone: 5, active: "packs/ab/cd"), at: 1)
    #expect(text.line == "5 of 20 files, 3.0 s left: packs/ab/cd")
  }

  @Test func unknownTotalShowsOnlyTheDoneCounts() {
    var text = ProgressText()
    text.update(ProgressCounters.State(filesDone: 1, noun: "blob"), at: 0)
    #expect(text.line == "1 blob")
    text.update(ProgressCounters.State(filesDone: 2001, bytesDone: 10 << 20, active: "a"), at: 1)
    #expect(text.line == "10.0 MiB, 2,001 files, 10.0 MiB/s: a")
    text.update(ProgressCounters.State(bytesToDo: 20 << 20, bytesDone: 20 << 20), at: 2)
    #expect(text.counts.hasPrefix("20.0 MiB of 20.0 MiB, 0 of 0 files"))
  }

  @Test func timeLeftIsTheLongerEstimate() {
    var text = ProgressText()
    text.update(Self.state(files: 0, bytes: 0), at: 0)
    // Half of the bytes, 1 percent of the files.
    text.update(Self.state(files: 12, bytes: 50 << 20), at: 1)
    #expect(text.counts.hasSuffix("1 min 39 s left"))
  }

  @Test func speedIsSmoothed() {
    var text = ProgressText()
    text.update(Self.state(files: 0, bytes: 0), at: 0)
    text.update(Self.state(files: 0, bytes: 10 << 20), at: 1)
    #expect(text.counts.contains(", 10.0 MiB/s"))
    text.update(Self.state(files: 0, bytes: 10 << 20), at: 2)
    #expect(text.counts.contains(", 9.0 MiB/s"))
    text.update(Self.state(files: 0, bytes: 10 << 20), at: 12)
    // No progress for ten seconds: no speed and no estimate.
    #expect(text.counts == "10.0 MiB of 100 MiB, 0 of 1,200 files")
  }

  /// The speed of the connection is measured separately from that of the disk, which ends with the
  /// last byte read.
  @Test func transfersHaveTheirOwnSpeed() {
    var text = ProgressText()
    let sent = { (bytes: UInt64) in TransferCounts.State(requests: 1, sent: bytes, received: 0) }
    text.update(Self.state(files: 0, bytes: 0), sent(0), at: 0)
    text.update(Self.state(files: 0, bytes: 50 << 20), sent(1 << 20), at: 1)
    #expect(
      text.counts == "50.0 MiB of 100 MiB, 0 of 1,200 files, 50.0 MiB/s, 1.0 s left, 1.0 MiB sent, "
        + "0 B received, 1.0 MiB/s")
    text.update(Self.state(files: 1200, bytes: 100 << 20), sent(11 << 20), at: 2)
    #expect(
      text.counts == "100 MiB of 100 MiB, 1,200 of 1,200 files, 11.0 MiB sent, 0 B received, "
        + "1.9 MiB/s")
  }

  @Test func lineFitsTheTerminal() {
    var text = ProgressText()
    text.update(Self.state(files: 0, bytes: 0, active: ""), at: 0)
    let path: ByteString = "folders/Bilder/Füße/日本語 und so weiter/bild\nmit Umbruch.jpeg"
    text.update(Self.state(files: 5, bytes: 5 << 20, problems: 3, active: path), at: 1)
    for columns in 1...200 {
      let line = text.line(columns: columns)
      #expect(ProgressText.width(line) <= columns, "\(columns): \(line)")
      #expect(!line.contains("\n"))
    }
    #expect(text.line(columns: 200) == "\(text.counts)  \(path)")
    let narrow = text.line(columns: ProgressText.width(text.counts) + 20)
    #expect(narrow.hasPrefix("\(text.counts)  …") && narrow.hasSuffix("Umbruch.jpeg"), "\(narrow)")
    #expect(text.line(columns: 12) == "5.0 MiB of 1")
  }
}
