import SampleDevice
import SystemIO
import TestSupport
import Testing

@Suite("Refusals of the sample device")
struct RefusalTests {
  @Test("a directory that is not empty is refused and unchanged")
  func aDirectoryThatIsNotEmptyIsRefused() throws {
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

  @Test("a second sample in the same directory is refused")
  func aSecondSampleIsRefused() throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"))
    let error = #expect(throws: SampleError.self) { try SampleDevice.make(at: scratch.path("a")) }
    #expect(error?.code == .notEmpty)
  }

  @Test("an empty directory or a link to one is accepted, and keeps its mode")
  func anEmptyDirectoryIsAccepted() throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try Directory.make(path: scratch.path("empty"))
    let root = try Directory.open(path: scratch.path)
    try root.setPermissions(0o700, of: "empty")
    try root.createLink("link", to: "empty")
    _ = try SampleDevice.make(at: scratch.path("link/"))
    #expect(try root.status("empty").permissions == 0o700)
    #expect(try root.directory("empty").names() == ["data", "device.plist"])
  }

  @Test("a file instead of a directory, or an empty path, is refused")
  func aFileIsRefused() throws {
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

  @Test("changing another device is refused")
  func anotherDeviceIsNotChanged() throws {
    let scratch = try TemporaryDirectory("sample")
    let root = try Directory.make(path: scratch.path("other"))
    let missing = #expect(throws: SampleError.self) {
      try SampleDevice.change(at: scratch.path("other"), day: 1)
    }
    #expect(missing?.code == .notASample)
    #expect(missing?.hint == "create one: sandboxctl sample DIR")
    try root.create("device.plist").close()
    let foreign = #expect(throws: SampleError.self) {
      try SampleDevice.change(at: scratch.path("other"), day: 1)
    }
    #expect(foreign?.code == .notASample)
    #expect(throws: SampleError.self) { try SampleDevice.change(at: scratch.path("none"), day: 1) }
  }

  @Test("unknown days are refused", arguments: [-1, 0, 31])
  func unknownDaysAreRefused(day: Int) throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"))
    let error = #expect(throws: SampleError.self) {
      try SampleDevice.change(at: scratch.path("a"), day: day)
    }
    #expect(error?.code == .noSuchDay)
    #expect(error?.hint == "use a day from 1 to 30")
  }

  @Test("after a failed call the error names the file, and nothing is removed")
  func aFailedCallIsReported() throws {
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

  @Test("without user attributes the report has the omitted marks")
  func missingAttributesAreReported() throws {
    let scratch = try TemporaryDirectory("sample")
    let unsupported: Int32 = 95
    let plan = Faults.Plan(
      failing: [.setAttributes], at: 1, number: unsupported, failsRepeatedly: true)
    let report = try Faults.inject(plan) { try SampleDevice.make(at: scratch.path("a")) }
    #expect(report.marksExcluded == 6)
    #expect(report.notes.first?.contains("6 exclusion marks are omitted") == true)
    let denied = Faults.Plan(failing: [.setAttributes], at: 1, number: 13)
    #expect(throws: SampleError.self) {
      try Faults.inject(denied) { try SampleDevice.make(at: scratch.path("b")) }
    }
  }
}
