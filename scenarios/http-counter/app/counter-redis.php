<?php
// The counter in Redis: connected anew by each request, as published; with ?p=1 the worker keeps its connection. A
// failure is told with status 200, as the published pages did.
try {
    $redis = new Redis();
    $connect = isset($_GET['p']) ? 'pconnect' : 'connect';
    $redis->$connect(getenv('DB_HOST'), (int) getenv('DB_PORT'));
    printf('counter: %s', $redis->incr('counter'));
} catch (RedisException $failure) {
    echo 'Redis failed: ', $failure->getMessage();
}
