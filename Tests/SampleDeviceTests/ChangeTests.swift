import SampleDevice
import SystemIO
import TestSupport
import Testing

@Suite("The days of the sample device")
struct ChangeTests {
  @Test("give the same device as a new sample of that day, from any other day")
  func eachDayMatchesANewSample() throws {
    let scratch = try TemporaryDirectory("sample")
    let path = scratch.path("a")
    _ = try SampleDevice.make(at: path)
    for day in [1, 2, 30, 3] {
      _ = try SampleDevice.change(at: path, day: day)
      let fresh = scratch.path(ByteString("fresh \(day)"))
      _ = try SampleDevice.make(at: fresh, day: day)
      #expect(try TreeListing(path).lines == TreeListing(fresh).lines, "day \(day)")
    }
  }

  @Test("edit, add and delete documents, change databases and preferences, and add caches")
  func aDayChangesDocumentsDatabasesAndCaches() throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"))
    let before = Set(try TreeListing(scratch.path("a")).lines)
    let report = try SampleDevice.change(at: scratch.path("a"), day: 1)
    let after = Set(try TreeListing(scratch.path("a")).lines)
    #expect(report.removed == 1)
    let (gone, come) = (before.subtracting(after), after.subtracting(before))
    for name in ["Groceries.md", "Notes.sqlite-wal", "Photos.sqlite", "org.example.notebook.plist"]
    {
      #expect(gone.contains { $0.contains("/\(name) ") } && come.contains { $0.contains(name) })
    }
    #expect(
      gone.contains { $0.contains("Draft 1.md") } && !come.contains { $0.contains("Draft 1") })
    #expect(come.contains { $0.contains("Day 1.md") } && come.contains { $0.contains("IMG_1001") })
    #expect(come.filter { $0.contains("fsCachedData/") }.count == 2)
    #expect(come.count < 25, "most of the device is unchanged")
    #expect(report.entries == come.filter { !$0.contains(" folder") }.count)
  }

  @Test("keep the changes of other programs")
  func changesOfOtherProgramsAreKept() throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"))
    let caches = try Directory.open(
      path: scratch.path("a/data/Containers/Data/Application")
        .appending("6B0D549B-6F03-475A-9600-A35A099950D8/Library/Caches/Thumbnails"))
    try caches.remove("IMG_0001.png")
    _ = try SampleDevice.change(at: scratch.path("a"), day: 1)
    #expect(try caches.statusIfPresent("IMG_0001.png") == nil)
  }

  @Test("do not write through hard links or symbolic links")
  func linksAreNotWrittenThrough() throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"))
    let notes = try Directory.open(
      path: scratch.path("a/data/Containers/Data/Application")
        .appending("D23F0824-128B-4F33-8C5C-7FD0A6A3A450/Documents/Notes"))
    let other = try Directory.open(path: scratch.path)
    try other.createHardLink("kept", to: "Groceries.md", in: notes)
    let kept = try other.file("kept").readAll(limit: 65_536)
    try other.createLink("link", to: "kept")
    try other.rename("link", to: "Groceries.md", in: notes)
    _ = try SampleDevice.change(at: scratch.path("a"), day: 2)
    #expect(try other.file("kept").readAll(limit: 65_536) == kept)
    #expect(try notes.status("Groceries.md").kind == .file)
  }
}
