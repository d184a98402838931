import Glibc
import SystemIO
import TestSupport
import Testing

struct FaultsTests {
  let temporary: TemporaryDirectory
  init() throws {
    temporary = try TemporaryDirectory("faults")
    try temporary.write("x", at: "f")
  }

  /// Reads the status of the file `count` times. Returns the numbers of the calls that failed,
  /// counted from 1.
  private func failures(of count: Int) -> [Int] {
    (1...count).filter { _ in failure { _ = try temporary.directory.status("f") } != nil }
  }

  @Test func theNthCallFailsOnce() {
    let plan = Faults.Plan(failing: [.status], at: 3, number: EIO)
    #expect(Faults.inject(plan) { failures(of: 6) } == [3])
    #expect(plan.count == 6)
    #expect(plan.hasFired)
    #expect(failures(of: 3) == [])
    #expect(plan.count == 6)
  }

  @Test func allCallsFailFromTheNthOn() {
    let plan = Faults.Plan(failing: [.status], at: 3, number: EIO, failsRepeatedly: true)
    #expect(Faults.inject(plan) { failures(of: 6) } == [3, 4, 5, 6])
  }

  @Test func onlyNamedOperationsCount() {
    let plan = Faults.Plan(failing: [.rename, .remove], at: 1, number: EROFS)
    Faults.inject(plan) {
      #expect(failures(of: 3) == [])
      #expect(plan.count == 0 && !plan.hasFired)
      let error = failure { try temporary.directory.remove("f") }
      #expect(error == SystemError(.remove, temporary.path("f"), number: EROFS))
    }
    #expect(plan.count == 1)
    // The failing call was not made.
    #expect(failures(of: 1) == [])
  }

  @Test func withoutNamesAllOperationsCount() throws {
    let plan = Faults.Plan(at: 100, number: EIO)
    try Faults.inject(plan) {
      _ = try temporary.directory.status("f")
      let file = try temporary.directory.file("f")
      _ = try file.read(count: 1, at: 0)
      try file.close()
    }
    #expect(plan.count == 4)
  }

  @Test func plansCanBeNested() {
    let (outer, inner) = (
      Faults.Plan(failing: [.status], at: 1, number: EIO, failsRepeatedly: true),
      Faults.Plan(failing: [.status], at: 2, number: EACCES)
    )
    Faults.inject(outer) {
      #expect(failures(of: 1) == [1])
      Faults.inject(inner) { #expect(failures(of: 3) == [2]) }
      #expect(failures(of: 1) == [1])
    }
    #expect(outer.count == 2 && inner.count == 3)
    #expect(failures(of: 1) == [])
  }

  @Test func aThrownErrorEndsThePlan() {
    struct Thrown: Error {}
    let plan = Faults.Plan(failing: [.status], at: 1, number: EIO, failsRepeatedly: true)
    #expect(throws: Thrown.self) { try Faults.inject(plan) { throw Thrown() } }
    #expect(failures(of: 1) == [])
  }

  @Test func aPlanBelongsToItsThread() throws {
    let (path, failed) = (temporary.path, Counter())
    let plan = Faults.Plan(failing: [.open], at: 1, number: EIO, failsRepeatedly: true)
    let workers = try Workers(count: 2, capacity: 2, name: "test")
    Faults.inject(plan) {
      for _ in 0..<10 {
        workers.submit {
          if failure({ _ = try Directory.open(path: path) }) != nil { failed.add() }
        }
      }
      workers.finish()
      #expect(failure { _ = try Directory.open(path: path) }?.number == EIO)
    }
    #expect(failed.value == 0)
    #expect(plan.count == 1)
  }

  @Test func startedThreadsInheritThePlan() throws {
    let (path, failed) = (temporary.path, Counter())
    let plan = Faults.Plan(failing: [.open], at: 5, number: EIO, failsRepeatedly: true)
    try Faults.inject(plan) {
      let workers = try Workers(count: 3, capacity: 2, name: "test")
      for _ in 0..<20 {
        workers.submit {
          if failure({ _ = try Directory.open(path: path) }) != nil { failed.add() }
        }
      }
      workers.finish()
    }
    #expect(failed.value == 16)
    #expect(plan.count == 20)
  }
}
