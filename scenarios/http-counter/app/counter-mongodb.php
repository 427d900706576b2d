<?php
// The counter in MongoDB: $inc by 1 on one document, then find it. The extension keeps the worker's connection by
// itself, as the published one did; unlike that one's, its writes are acknowledged. A failure is told with status 200,
// as the published pages did.
try {
    $server = new MongoDB\Driver\Manager('mongodb://' . getenv('DB_HOST') . ':' . getenv('DB_PORT') . '/');
    $write = new MongoDB\Driver\BulkWrite();
    $write->update(['_id' => 'counter'], ['$inc' => ['number' => 1]]);
    $server->executeBulkWrite('dbbench.incr', $write);
    $found = $server->executeQuery('dbbench.incr', new MongoDB\Driver\Query(['_id' => 'counter']))->toArray();
    printf('counter: %s', $found[0]->number);
} catch (MongoDB\Driver\Exception\Exception $failure) {
    echo 'MongoDB failed: ', $failure->getMessage();
}
