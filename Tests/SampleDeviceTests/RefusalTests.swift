import SampleDevice
import SystemIO
import TestSupport
import Testing

@Suite("What the sample device refuses")
struct RefusalTests {
  @Test("a directory that holds something, and leaves it as it is")
  func refusesFullDirectory() throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try Directory.make(path: scratch.path("full/thesis"))
    let before = try TreeListing(scratch.path).lines
    let error = #expect(throws: SampleError.self) {
      try SampleDevice.make(at: scratch.path("full"))
    }
    #expect(error?.code == .notEmpty)
    #expect(error?.description.contains("full': the directory is not empty") == true)
    #expect(error?.hint?.contains("does not exist or is empty") == true)
    #expect(try TreeListing(scratch.path).lines == before)
  }

  @Test("a second sample in the same directory")
  func refusesTwice() throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"))
    let error = #expect(throws: SampleError.self) { try SampleDevice.make(at: scratch.path("a")) }
    #expect(error?.code == .notEmpty)
  }

  @Test("no empty directory, whose mode it keeps, and no link to one")
  func takesEmptyDirectory() throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try Directory.make(path: scratch.path("empty"))
    let root = try Directory.open(path: scratch.path)
    try root.setPermissions(0o700, of: "empty")
    try root.createLink("link", to: "empty")
    _ = try SampleDevice.make(at: scratch.path("link/"))
    #expect(try root.status("empty").permissions == 0o700)
    #expect(try root.directory("empty").names() == ["data", "device.plist"])
  }

  @Test("a file in the directory's place, and an empty path")
  func refusesFile() throws {
    let scratch = try TemporaryDirectory("sample")
    let root = try Directory.open(path: scratch.path)
    try root.create("file").close()
    let error = #expect(throws: SampleError.self) {
      try SampleDevice.make(at: scratch.path("file"))
    }
    #expect(error?.code == .system)
    let below = #expect(throws: SampleError.self) {
      try SampleDevice.make(at: scratch.path("file/sample"))
    }
    #expect(below?.reason == "not a directory")
    #expect(throws: SampleError.self) { try SampleDevice.make(at: "") }
  }

  @Test("to change what is no sample of its own")
  func refusesForeignDevice() throws {
    let scratch = try TemporaryDirectory("sample")
    let root = try Directory.make(path: scratch.path("other"))
    let missing = #expect(throws: SampleError.self) {
      try SampleDevice.change(at: scratch.path("other"), day: 1)
    }
    #expect(missing?.code == .notASample)
    #expect(missing?.hint == "make one first: sandboxctl sample DIR")
    try root.create("device.plist").close()
    let foreign = #expect(throws: SampleError.self) {
      try SampleDevice.change(at: scratch.path("other"), day: 1)
    }
    #expect(foreign?.code == .notASample)
    #expect(throws: SampleError.self) { try SampleDevice.change(at: scratch.path("none"), day: 1) }
  }

  @Test("days that it does not have", arguments: [-1, 0, 31])
  func refusesDays(day: Int) throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"))
    let error = #expect(throws: SampleError.self) {
      try SampleDevice.change(at: scratch.path("a"), day: day)
    }
    #expect(error?.code == .noSuchDay)
    #expect(error?.hint == "name a day from 1 to 30")
  }

  @Test("to go on when a call fails: the error names the file, nothing is removed")
  func reportsFaults() throws {
    for operation in [SystemError.Operation.create, .write, .createLink, .link, .setTimes] {
      let scratch = try TemporaryDirectory("sample")
      let plan = Faults.Plan(failing: [operation], at: 2, number: 28)
      let error = #expect(throws: SampleError.self) {
        try Faults.inject(plan) { try SampleDevice.make(at: scratch.path("a")) }
      }
      #expect(error?.code == .system, "\(operation)")
      #expect(error?.subject.isWithin(scratch.path("a")) == true, "\(operation)")
      #expect(error?.hint != nil)
      #expect(try TreeListing(scratch.path("a")).lines.count > 10)
    }
  }

  @Test("nothing where the file system has no user attributes: it says what is left out")
  func notesMissingAttributes() throws {
    let scratch = try TemporaryDirectory("sample")
    let unsupported: Int32 = 95
    let plan = Faults.Plan(
      failing: [.setAttributes], at: 1, number: unsupported, staysBroken: true)
    let report = try Faults.inject(plan) { try SampleDevice.make(at: scratch.path("a")) }
    #expect(report.marksExcluded == 6)
    #expect(report.notes.first?.contains("6 exclusion marks are left out") == true)
    let denied = Faults.Plan(failing: [.setAttributes], at: 1, number: 13)
    #expect(throws: SampleError.self) {
      try Faults.inject(denied) { try SampleDevice.make(at: scratch.path("b")) }
    }
  }
}
