# Reads a directory of Basho Bench's files as that tool's own plots do, and draws them: Rscript read.R DIRECTORY PICTURE
# Prints what the test compares: operations, and the total, the highest latency (ms) and the errors of each of them.
arguments <- commandArgs(trailingOnly = TRUE)
directory <- arguments[1]

numeric_table <- function(path, columns) {
  table <- read.csv(path, strip.white = TRUE)
  stopifnot(ncol(table) == columns, nrow(table) > 0, all(sapply(table, is.numeric)), !anyNA(table))
  table
}

summary <- numeric_table(file.path(directory, "summary.csv"), 5)
stopifnot(colnames(summary) == c("elapsed", "window", "total", "successful", "failed"))
stopifnot(summary$total == summary$successful + summary$failed, diff(summary$elapsed) > 0)

files <- list.files(directory, pattern = "_latencies.csv")
columns <- c("elapsed", "window", "n", "min", "mean", "median", "X95th", "X99th", "X99_9th", "max", "errors")
latencies <- lapply(files, function(name) {
  table <- numeric_table(file.path(directory, name), 11)
  stopifnot(colnames(table) == columns, table$elapsed == summary$elapsed)
  table[4:10] <- table[4:10] / 1000
  some <- table[table$n > 0, ]
  stopifnot(some$min <= some$mean, some$mean <= some$max, some$median <= some$X95th, some$X99_9th <= some$max)
  table
})
stopifnot(sum(summary$successful) == sum(sapply(latencies, function(table) sum(table$n))))

pdf(arguments[2])
par(mfrow = c(length(latencies) + 1, 1), mar = c(4, 4, 2, 1))
plot(summary$elapsed, summary$successful / summary$window, type = "b", ylim = c(0, max(summary$total / summary$window)),
     main = "Throughput", xlab = "elapsed (s)", ylab = "op/s")
lines(summary$elapsed, summary$failed / summary$window, col = "red")
for (at in seq_along(files)) {
  matplot(latencies[[at]]$elapsed, latencies[[at]][5:10], type = "b", pch = 1:6, main = files[at],
          xlab = "elapsed (s)", ylab = "latency (ms)")
}
invisible(dev.off())

for (at in seq_along(files)) {
  label <- sub("_latencies.csv", "", files[at], fixed = TRUE)
  table <- latencies[[at]]
  cat(label, sum(table$n), format(max(table$max), nsmall = 6, digits = 15), sum(table$errors), "\n")
}
errors <- read.csv(file.path(directory, "errors.csv"), colClasses = c("character", "numeric"))
stopifnot(colnames(errors) == c("error", "count"))
cat("errors", sum(errors$count), "\n")
